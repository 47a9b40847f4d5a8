"""Options that documentation describes: tables under a heading about options, directives, headings with a default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from indexer.parsing.registrations.file_context import FileContext
from indexer.types import Registration, RegistrationKind

_ABOUT_OPTIONS = re.compile(
    r"\b(?:options?|config(?:uration)?s?|settings?|env(?:ironment)?(?:\s+variables?)?|variables?|flags?|parameters?)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_ANCHOR = re.compile(r"<a [^<>]{0,120}></a>|\{#[^{}]{0,80}\}")
_CODE_HEADING = re.compile(r"[`*]{0,3}([\w.$-]{2,60})[`*]{0,3}")
_DEFAULT = re.compile(
    r"[\s*+-]{0,8}[*_]{0,2}Defaults?(?:\s+value)?[*_]{0,2}\s*(?::|=|is)[*_]{0,2}\s*(\S.*)", re.IGNORECASE
)
_DIRECTIVE = re.compile(r"\.\.\s+(setting|confval|envvar|option|cmdoption|program-option)::\s*(\S.{0,120})")
_ITEM = re.compile(r"\s{0,3}[-*+]\s+`{1,2}(-{0,2}[A-Za-z][\w.<>=, -]{0,80})`{1,2}\s*(?:[:–—-]|\s-)\s*(\S.*)")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_RULE = re.compile(r"[\s|:=-]+")
_MARKUP = re.compile(r"[`*]+|<br\s*/?>")
_DEFAULT_COLUMN = re.compile(r"default", re.IGNORECASE)
_HELP_COLUMN = re.compile(r"desc|mean|purpose|what|explan|effect|comment|use", re.IGNORECASE)
_BULLETS = ("-", "*", "+")
_REACH = 12  # lines behind a heading or a directive in which its default stands
_PAST = re.compile(r"changelog|changes|history|migrat|upgrad|release|/news", re.IGNORECASE)  # of other versions
_MAX_LINES = 20_000
_LONGEST_LINE = 2_000
_KINDS: dict[str, RegistrationKind] = {"envvar": "environment", "option": "flag", "cmdoption": "flag"}


def find_documented_options(lines: Sequence[str], context: FileContext) -> Iterator[Registration]:
    """Find the options that a Markdown or reStructuredText document describes."""
    if _PAST.search(context.path):
        return
    lines = [line[:_LONGEST_LINE] for line in lines[:_MAX_LINES]]
    is_about, heading, fence = False, "", ""
    number = 0
    while number < len(lines):
        line = lines[number]
        mark = line.lstrip()[:3]
        if mark in {"```", "~~~"} and (not fence or mark == fence):
            fence = "" if fence else mark
        elif not fence:
            if line.startswith("..") and (directive := _DIRECTIVE.match(line)) is not None:
                yield _make_directive(directive, lines, number, context)
            elif mark[:1] == "#" and (found := _HEADING.match(line)) is not None:
                heading = _ANCHOR.sub("", found[2]).strip()
                is_about = bool(_ABOUT_OPTIONS.search(heading)) or (is_about and len(found[1]) > 2)
                yield from _read_heading(heading, lines, number, context)
            elif is_about and "|" in line and _is_rule(lines, number + 1):
                table = _read_table(lines, number)
                yield from _make_rows(table, number, context)
                number += len(table)
                continue
            elif is_about and mark[:1] in _BULLETS and (item := _ITEM.match(line)) is not None:
                yield _make_option(item[1], number, "", item[2], context)
            elif mark and _is_underlined(lines, number):
                is_about = bool(_ABOUT_OPTIONS.search(line))
        number += 1


def _is_rule(lines: Sequence[str], number: int) -> bool:
    return (
        number < len(lines) and "-" in lines[number] and "|" in lines[number] and bool(_RULE.fullmatch(lines[number]))
    )


def _is_underlined(lines: Sequence[str], number: int) -> bool:
    """Whether a line is an underlined heading."""
    below = lines[number + 1].rstrip() if number + 1 < len(lines) else ""
    return len(below) > 2 and below[0] in "=-~^\"'*+#" and not below.strip(below[0]) and bool(lines[number].strip())


def _make_directive(found: re.Match[str], lines: Sequence[str], number: int, context: FileContext) -> Registration:
    kind = _KINDS.get(found[1], "setting")
    default, said = _read_body(lines, number + 1, skip=found[2].strip())
    return context.make(kind, found[2].strip(), number + 1, detail=default, text=said)


def _read_heading(heading: str, lines: Sequence[str], number: int, context: FileContext) -> Iterator[Registration]:
    """Read a heading that names an option, if a default follows directly below."""
    name = _CODE_HEADING.fullmatch(heading)
    if name is None:
        return
    default, said = _read_body(lines, number + 1)
    if default:
        yield _make_option(name[1], number, default, said, context)


def _read_body(lines: Sequence[str], first: int, *, skip: str = "") -> tuple[str, str]:
    """Return the default and the first sentence below a name."""
    default, said, is_open = "", "", False
    for line in lines[first : first + _REACH]:
        text = line.strip()
        if _HEADING.match(line) or _DIRECTIVE.match(line):
            break
        if (found := _DEFAULT.match(line)) is not None and not default:
            default = _clean(found[1]).rstrip(".")
        elif is_open and not text:
            break
        elif text and text != skip and text[0] not in "=-~^:.+|<" and not text.startswith(("* ", "Default", "```")):
            said, is_open = f"{said} {text}".strip(), True
    return default, _clean(said)


def _read_table(lines: Sequence[str], first: int) -> list[list[str]]:
    rows = []
    for line in lines[first : first + 500]:
        if "|" not in line:
            break
        rows.append([_clean(cell) for cell in line.strip().strip("|").replace("\\|", "¦").split("|")])
    return rows


def _make_rows(table: list[list[str]], first: int, context: FileContext) -> Iterator[Registration]:
    """Make an option of each row whose first cell looks like a name."""
    head = table[0]
    default = next((place for place, cell in enumerate(head) if place and _DEFAULT_COLUMN.search(cell)), None)
    said = next((place for place, cell in enumerate(head) if place and _HELP_COLUMN.search(cell)), None)
    for offset, row in enumerate(table[2:], start=2):
        name = row[0]
        if not name or len(name) > 80 or not (name.startswith("-") or _CODE_HEADING.fullmatch(name)):
            continue
        text = row[said] if said is not None and said < len(row) else row[-1] if len(row) > 1 else ""
        value = row[default] if default is not None and default < len(row) else ""
        yield _make_option(name, first + offset, value, text, context)


def _make_option(name: str, number: int, default: str, text: str, context: FileContext) -> Registration:
    kind: RegistrationKind = (
        "flag" if name.startswith("-") else "environment" if _VARIABLE.fullmatch(name) else "setting"
    )
    return context.make(kind, name, number + 1, detail=default, text=_clean(text))


def _clean(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())
