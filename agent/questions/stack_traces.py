"""Reads the frames of pasted stack traces in the commonest languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from indexer.text.linear_patterns import compile_pattern

MAX_FRAMES = 40
_MAX_PATH = 400
_MAX_MESSAGE = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class StackFrame:
    """One line of a stack trace; `path` is as the failing machine wrote it, with forward slashes.

    `function` is the last part of the function's name and `source` the line itself, empty if
    unknown.
    """

    path: str
    line: int
    function: str = ""
    source: str = ""


_PYTHON = re.compile(
    r'File "(?P<path>[^"\n]{1,400})", line (?P<line>\d{1,7})'
    r"(?:, in (?P<function>[\w.<>]{1,200})(?:\n[ \t]+(?P<source>(?![ \t]|File )[^\n]{1,300}))?)?"
)
_JAVA = re.compile(
    r"\bat (?P<class>[\w$.]{1,300})\.(?P<function>[\w$<>]{1,200})"
    r"\((?P<file>[\w$]{1,120}\.(?:java|kt|scala|groovy)):(?P<line>\d{1,7})\)"
)
_JAVASCRIPT = compile_pattern(
    r"(?:^|\W)at (?:(?P<function>[^\n()]+?)(?: \[as [^\]\n]+\])? \()?(?:file://)?"
    r"(?P<path>[^\s():]+\.(?:[cm]?[jt]sx?|vue|svelte)):(?P<line>\d{1,7})"
)
_GO = compile_pattern(
    r"(?m)(?:^(?P<function>\S[^\n]*)\([^\n()]*\)\n[ \t]*|^|[ \t\r\f\v\p{Z}])(?P<path>[^\s:]+\.go):(?P<line>\d{1,7})"
)
_RUST = compile_pattern(r"(?:(?:^|\W)at|-->) \.?/?(?P<path>[^\s:]+\.rs):(?P<line>\d{1,7})")
_RUBY = compile_pattern(r"(?:^|\s)(?P<path>[^\s:]+\.rb):(?P<line>\d{1,7}):in [`']")
_DOTNET = compile_pattern(r" in (?P<path>(?:[A-Za-z]:)?[^\n:]+\.cs):line (?P<line>\d{1,7})")
_OTHERS = (_JAVASCRIPT, _GO, _RUST, _RUBY, _DOTNET)
_MESSAGE = compile_pattern(
    r"(?m)^(?:Caused by: )?(?:Uncaught )?(?:[\w$]+\.)*\w*(?:Error|Exception|Warning|Exit|Fault): (?P<named>[^\n]{3,})$"
    r"|^panic: (?P<go>[^\n]{3,})$"
    r"|panicked at (?:'(?P<old>[^'\n]{3,})'|[^\n]+:\n(?P<rust>[^\n]{3,}))"
)
_LAST_LINE = re.compile(
    r"^(?:Caused by: |Exception in thread \"[^\"\n]{1,80}\" )?"
    r"(?P<error>(?:\w{1,80}\.){0,12}[A-Z]\w{0,120}(?:Error|Exception|Warning|Interrupt|Exit|Fault))\b",
    re.MULTILINE,
)


def parse_frames(text: str) -> tuple[StackFrame, ...]:
    """Return the frames of a stack trace, the failing one first; empty if there is none."""
    python = [_make_frame(found) for found in _PYTHON.finditer(text)]
    if python:
        return tuple(reversed(python))[:MAX_FRAMES]
    java = [
        StackFrame(
            path="/".join([*found["class"].split("$")[0].split(".")[:-1], found["file"]]),  # its package, and the file
            line=int(found["line"]),
            function=_read_last_part(found["function"]),
        )
        for found in _JAVA.finditer(text)
    ]
    if java:
        return tuple(java)[:MAX_FRAMES]
    for pattern in _OTHERS:
        # The first frames only: each may be looked for up to the end of the text.
        first = islice(pattern.finditer(text), MAX_FRAMES)
        frames = [_make_frame(found) for found in first if len(found["path"]) <= _MAX_PATH]
        # Any `file.go:12` looks like one of Go's frames.
        is_trace = pattern is not _GO or len(frames) > 1 or "goroutine " in text or "panic:" in text
        if frames and is_trace:
            return tuple(frames)
    return ()


def parse_error_name(text: str) -> str:
    """Return the class of the error that a stack trace ends with, or an empty string."""
    found = _LAST_LINE.findall(text)
    return str(found[-1]).rpartition(".")[2] if found else ""


def parse_error_message(text: str) -> str:
    """Return the error message of a stack trace, or an empty string."""
    found = [next(filter(None, found.groups())) for found in _MESSAGE.finditer(text)]
    messages = [message.strip() for message in found if len(message) <= _MAX_MESSAGE]
    return messages[-1] if messages else ""


def _make_frame(found: re.Match[str]) -> StackFrame:
    groups = found.groupdict()
    return StackFrame(
        path=groups["path"].replace("\\", "/"),
        line=int(groups["line"]),
        function=_read_last_part(groups.get("function") or ""),
        source=(groups.get("source") or "").strip(),
    )


def _read_last_part(function: str) -> str:
    """Reduce a function's name to its last part; empty for a module or an anonymous function."""
    last = re.split(r"[./:]+", function.removesuffix("(...)").strip())[-1]
    return last if re.fullmatch(r"[^\W\d]\w*", last) else ""
