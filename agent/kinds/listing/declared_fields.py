"""Reads from the text of a type what it is set up with: parameters of its constructor, fields, documented options."""

from __future__ import annotations

from collections.abc import Sequence

from agent.kinds.listing.member_text import Member, split_arguments
from indexer.text.linear_patterns import Pattern, compile_pattern

_MOST_LINES = 600
_LONGEST_LINE = 300
_LONGEST_VALUE = 200
_OWNERS = frozenset({"self", "cls", "this"})
_PASSED_WHOLE = frozenset(
    "options opts config args kwargs params argv props settings".split()
)  # hold options, are none
_PRIVATE = compile_pattern(r"(?:^|\s)(?:private|protected|internal|fileprivate)\s")
_MODIFIED = (
    r"^\s+(?:(?:public|static|final|readonly|const|val|var|let|open|override|required|volatile|declare)\s+)+"
    r"(?:[\w<>\[\],.?|]+\s+)??\$?(?P<name>[A-Za-z_]\w*)\s*(?::[^=]{1,80})?(?:=\s*(?P<value>[^=>;][^;]*))?[;,]?\s*(?://.*)?$"
)
_MEMBERS = r"^\s+(?P<name>[A-Za-z_]\w*)\??\s*(?::[^=(]{1,120})(?:=\s*(?P<value>[^;]+?))?[;,]?\s*$"
_FIELDS: dict[str, Pattern] = {
    "python": compile_pattern(r"^\s+(?:self\.)?(?P<name>[a-zA-Z]\w*)\s*(?::[^=]{1,80})?=\s*(?P<value>[^=].*)$"),
    "go": compile_pattern(r"^\s(?P<name>[A-Z]\w*)(?P<value>)\s+[^\s:=(].*$"),
    "rust": compile_pattern(r"^\s+pub(?:\([^)]{0,20}\))?\s+(?P<name>\w+)(?P<value>)\s*:\s*.+$"),
    "c": compile_pattern(r"^\s+[A-Za-z][\w\s*]{0,80}?[\s*](?P<name>[A-Za-z_]\w*)(?P<value>)(?:\[[^\]]{0,40}\])?\s*;"),
    "ruby": compile_pattern(r"^\s+(?:attr_accessor|attr_writer)\s+:(?P<name>\w+)(?P<value>)"),
    "javascript": compile_pattern(r"^\s+this\.(?P<name>[a-zA-Z]\w*)\s*=\s*(?P<value>[^=].*?);?$"),
    "typescript": compile_pattern(rf"(?:{_MEMBERS})|(?:^\s+this\.(?P<own>[a-zA-Z]\w*)\s*=\s*(?P<set>[^=].*?);?$)"),
    "java": compile_pattern(_MODIFIED),
}
_ALIKE = {"cpp": "c", "tsx": "typescript", "jsx": "javascript"}
_JUST_SELF = compile_pattern(r"^\s+(?:self|this)\.")
_PARAM_TAG = compile_pattern(
    r"^\s*\*?\s*@param\s+\{[^{}]{0,120}\}\s+\[?\w+(?:\[\])?\.(?P<name>\w[\w.]*)(?:\s*=\s*(?P<value>[^\]]{1,80}))?\]?"
)
_PHP_NAME = compile_pattern(r"\$([A-Za-z_]\w*)")
_LAST_NAME = compile_pattern(r"([A-Za-z_]\w*)(?:\[\])?\s*$")
_KEYWORD = compile_pattern(r"^\s*([a-z_]\w*):\s*(.*)$")
_ATTRIBUTE = compile_pattern(r"@\w+(?:\([^()]{0,100}\))?|#\[[^\]]{0,100}\]")
_COMMENT = compile_pattern(r"^\s*(?://+!?|#+|/\*+|\*+)\s?(?P<text>.*?)(?:\*/)?\s*$")


def read_parameters(lines: Sequence[str], language: str) -> tuple[Member, ...]:
    """Return the parameters of the function that begins on the first line, with their defaults.

    What is the object itself, and what only passes options on as a whole, is left out.
    """
    text = "\n".join(line[:_LONGEST_LINE] for line in lines[:_MOST_LINES])
    found = [_read_parameter(item, offset, language) for offset, item in split_arguments(text, language)]
    return tuple(one for one in found if one is not None and one.name not in _OWNERS | _PASSED_WHOLE)


def _read_parameter(item: str, offset: int, language: str) -> Member | None:
    written = " ".join(_ATTRIBUTE.sub(" ", item).split()).lstrip("*&")
    if language == "ruby" and (found := _KEYWORD.match(written)) is not None:
        return Member(name=found[1], value=found[2][:_LONGEST_VALUE], offset=offset)
    left, _, value = written.partition("=")
    named = _PHP_NAME.search(left) if language == "php" else _LAST_NAME.search(left.partition(":")[0].rstrip("? "))
    if named is None:
        return None
    return Member(name=named[1], value=value.strip()[:_LONGEST_VALUE], offset=offset)


def read_fields(lines: Sequence[str], language: str) -> tuple[Member, ...]:
    """Return the fields and constants that a type declares for others, in its order, each once."""
    pattern = _FIELDS.get(_ALIKE.get(language, language), _FIELDS["java"])
    kept = [line.rstrip()[:_LONGEST_LINE] for line in lines[:_MOST_LINES]]
    indents = [len(line) - len(line.lstrip()) for line in kept[1:] if line.strip()]
    own = len(kept[0]) - len(kept[0].lstrip()) if kept else 0
    within = min((indent for indent in indents if indent > own), default=own + 1)
    found: dict[str, Member] = {}
    for offset, line in enumerate(kept[1:], start=1):
        is_near = len(line) - len(line.lstrip()) == within or _JUST_SELF.match(line)
        match = pattern.match(line) if is_near and not _PRIVATE.search(line) else None
        if match is None:
            continue
        groups = match.groupdict()
        name, value = groups["name"] or groups.get("own") or "", groups["value"] or groups.get("set") or ""
        if not name.startswith("_"):
            found.setdefault(name, Member(name=name, value=value.strip().rstrip(",")[:_LONGEST_VALUE], offset=offset))
    return tuple(found.values())


def read_documented_options(lines: Sequence[str]) -> tuple[Member, ...]:
    """Return the options that the tags of a comment describe: `@param {string} [options.env='development']`."""
    tags = ((offset, _PARAM_TAG.match(line[:_LONGEST_LINE])) for offset, line in enumerate(lines[:_MOST_LINES]))
    found = [(offset, tag) for offset, tag in tags if tag is not None]
    return tuple(Member(name=tag["name"], value=(tag["value"] or "").strip(), offset=offset) for offset, tag in found)


def read_remark_above(lines: Sequence[str], offset: int) -> str:
    """Return the first sentence of the comment right above a line."""
    said: list[str] = []
    for line in reversed(lines[max(0, offset - 12) : offset]):
        found = _COMMENT.match(line[:_LONGEST_LINE])
        if found is None:
            break
        said.append(found["text"])
    text = " ".join(" ".join(reversed(said)).split())
    sentence, end, _ = text.partition(". ")
    return f"{sentence}{end.strip()}"
