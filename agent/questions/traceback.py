"""Reads the frames of a pasted stack trace in the languages that people paste most."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_FRAMES = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One line of a stack trace; `path` is as the machine that failed wrote it, with forward slashes.

    `function` is the last part of the function's name and `source` the line itself, empty where it does not tell.
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
_JAVASCRIPT = re.compile(
    r"\bat (?:(?P<function>[^\n()]{1,200}?)(?: \[as [^\]\n]{1,80}\])? \()?(?:file://)?"
    r"(?P<path>[^\s():]{1,400}\.(?:[cm]?[jt]sx?|vue|svelte)):(?P<line>\d{1,7})(?::\d{1,7})?\)?"
)
_GO = re.compile(
    r"(?:^(?P<function>[^\s][^\n]{0,300})\([^\n()]{0,200}\)\n)?"
    r"[ \t]*(?<!\S)(?P<path>[^\s:]{1,400}\.go):(?P<line>\d{1,7})"
    r"(?: \+0x[0-9a-f]{1,16})?",
    re.MULTILINE,
)
_RUST = re.compile(r"(?:\bat|-->) \.?/?(?P<path>[^\s:]{1,400}\.rs):(?P<line>\d{1,7})(?::\d{1,7})?")
_RUBY = re.compile(r"(?<!\S)(?P<path>[^\s:]{1,400}\.rb):(?P<line>\d{1,7}):in [`']")
_DOTNET = re.compile(r" in (?P<path>[^\n:]{1,400}\.cs|[A-Za-z]:[^\n:]{1,400}\.cs):line (?P<line>\d{1,7})")
_OTHERS = (_JAVASCRIPT, _GO, _RUST, _RUBY, _DOTNET)
_MESSAGE = re.compile(
    r"^(?:Caused by: )?(?:Uncaught )?(?:[\w$]{1,80}\.){0,12}[A-Z]?\w{0,120}(?:Error|Exception|Warning|Exit|Fault): "
    r"(?P<named>[^\n]{3,300})$"
    r"|^panic: (?P<go>[^\n]{3,300})$"
    r"|panicked at (?:'(?P<old>[^'\n]{3,300})'|[^\n]{1,300}:\n(?P<rust>[^\n]{3,300}))",
    re.MULTILINE,
)
_LAST_LINE = re.compile(
    r"^(?:Caused by: |Exception in thread \"[^\"\n]{1,80}\" )?"
    r"(?P<error>(?:\w{1,80}\.){0,12}[A-Z]\w{0,120}(?:Error|Exception|Warning|Interrupt|Exit|Fault))\b",
    re.MULTILINE,
)


def read_frames(text: str) -> tuple[Frame, ...]:
    """Return the frames of a stack trace, the one that failed first; empty when there is none."""
    python = [_frame(found) for found in _PYTHON.finditer(text)]
    if python:
        return tuple(reversed(python))[:MAX_FRAMES]
    java = [
        Frame(path=_java_path(found), line=int(found["line"]), function=_plain(found["function"]))
        for found in _JAVA.finditer(text)
    ]
    if java:
        return tuple(java)[:MAX_FRAMES]
    for pattern in _OTHERS:
        frames = [_frame(found) for found in pattern.finditer(text)]
        if frames and _is_trace(pattern, text, frames):
            return tuple(frames)[:MAX_FRAMES]
    return ()


def error_name(text: str) -> str:
    """Return the class of the error that a stack trace ends with, or an empty string."""
    found = _LAST_LINE.findall(text)
    return str(found[-1]).rpartition(".")[2] if found else ""


def error_message(text: str) -> str:
    """Return what the error of a stack trace says, or an empty string."""
    found = _MESSAGE.findall(text)
    said = [next(part for part in parts if part).strip() for parts in found]
    return said[-1] if said else ""


def _frame(found: re.Match[str]) -> Frame:
    groups = found.groupdict()
    return Frame(
        path=_slashes(groups["path"]),
        line=int(groups["line"]),
        function=_plain(groups.get("function") or ""),
        source=(groups.get("source") or "").strip(),
    )


def _plain(function: str) -> str:
    """Cut a function's name to its last part; empty for a module or an anonymous function."""
    last = re.split(r"[./:]+", function.removesuffix("(...)").strip())[-1]
    return last if re.fullmatch(r"[^\W\d]\w*", last) else ""


def _is_trace(pattern: re.Pattern[str], text: str, frames: list[Frame]) -> bool:
    """Whether Go's frames, which look like any `file.go:12`, come from a trace."""
    return pattern is not _GO or len(frames) > 1 or "goroutine " in text or "panic:" in text


def _java_path(found: re.Match[str]) -> str:
    package = found["class"].split("$")[0].split(".")[:-1]
    return "/".join([*package, found["file"]])


def _slashes(path: str) -> str:
    return path.replace("\\", "/")
