"""Reads an error as people paste it without its stack trace: the name of the exception, and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.questions.mentions import normalize_name
from indexer.text.linear_patterns import compile_pattern

_LONGEST = 4_000  # characters that are looked at
_LONGEST_MESSAGE = 400
_KIND = r"(?:Error|Exception|Warning|Exit|Fault|Failure|Interrupt)"
_PART = r"[A-Za-z_]\w{0,80}"
# A name that only exceptions have, or a dotted one of a class, such as `jinja2.exceptions.TemplateNotFound`.
_NAME = (
    rf"(?P<name>(?:{_PART}(?:\.|::|\\)){{0,10}}(?:[A-Z]\w{{0,80}}{_KIND}|{_KIND})(?!\w)"
    rf"|(?:{_PART}(?:\.|::|\\)){{1,10}}[A-Z]\w{{1,80}}(?!\w)"
    r"|[A-Z][a-z0-9]{1,40}(?:[A-Z][a-z0-9]{1,40}){1,5}(?!\w))"
)
_NAMED = re.compile(rf"(?<![\w.:/\\]){_NAME}:[ \t]+(?P<message>[^\n]{{2,}})")
_ALONE = re.compile(rf"\s*`?{_NAME}`?[\s.!:]*")
# What programs and shells put before what they say, at the beginning of a line.
_LEVEL = compile_pattern(
    r"(?im)^(?:[\w./-]{1,40}: )?(?:\w{1,40} )?(?:error|fatal(?: error)?|panic|failure|warning)(?:\[\w{1,20}\])?: "
    r"(?P<message>[^\n]{3,})",
    loose=True,
)
_ENDING = re.compile(rf"{_KIND}$")
_GENERAL = frozenset({"Error", "Exception", "Warning", "Exit", "Fault", "Failure", "Interrupt"})
_BEFORE = frozenset({"", '"', "'", "`", "“", "E", "Uncaught", "Uncaught (in promise)", "Caused by:", "(", "["})
_ASKS = compile_pattern(r"(?i)(?:how|what|where|why|who|which|when|is|are|does|do|can|should)\b|[^\n]*\?\s*$")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PastedError:
    """The exception as it was written, with dots between its parts, and what it says; either may be empty."""

    name: str
    message: str

    @property
    def last_name(self) -> str:
        """The name of the exception itself, without what it lies in."""
        return self.name.rpartition(".")[2]


def parse_pasted_error(text: str) -> PastedError | None:
    """Read the last error in a text, or one that is nothing but a dotted exception; None where there is none."""
    beginning = text[:_LONGEST]
    found = [one for one in _NAMED.finditer(beginning) if _is_error(one)]
    if found:
        return _make_error(beginning, found[-1])
    alone = _ALONE.fullmatch(beginning)
    if alone is not None and ("." in normalize_name(alone["name"]) or _ENDING.search(alone["name"])):
        return PastedError(name=normalize_name(alone["name"].replace("\\", ".")), message="")
    level = _LEVEL.search(beginning)
    return PastedError(name="", message=_cut_message(level["message"])) if level is not None else None


def _is_error(found: re.Match[str]) -> bool:
    """Whether what precedes a colon is an exception: not in `TypeScript: how is it built?` or `Server Error: /`."""
    before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
    if found["name"] in _GENERAL:
        return before in _BEFORE
    is_sure = "." in found["name"] or "::" in found["name"] or bool(_ENDING.search(found["name"]))
    return is_sure or (before in _BEFORE and not _ASKS.match(found["message"]))


def _make_error(text: str, found: re.Match[str]) -> PastedError:
    before = text[: found.start()]
    closing = _QUOTES.get(before[-1:], "")
    message = found["message"]
    if closing and closing in message:
        message = message[: message.rindex(closing)]  # it is quoted with its name
    return PastedError(name=normalize_name(found["name"].replace("\\", ".")), message=_cut_message(message))


def _cut_message(message: str) -> str:
    return " ".join(message.split())[:_LONGEST_MESSAGE]
