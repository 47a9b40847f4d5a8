"""Tells what kind of answer a question wants, by the tables in `kinds/`: what changed, how to run it, which options."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from agent.state import Lookup
from indexer.text.linear_patterns import Pattern, compile_pattern

_LONGEST = 300  # characters; a longer question is about more than one thing
_ENDS = " ?!.。？！¿¡"
_GLOSS = compile_pattern(r"\([^()]{0,80}\)")
# At the end of a question for a list: what the list says of each entry anyway, or that it is to be counted and listed;
# of one about people, a second one.
_ADDITION = compile_pattern(
    r"(?i)[,;]? (?:and|und|et|y) (?:what(?:'s|’s|s| is| are)?|whats|which|their|its|whose|how many|welche[sn]?"
    r"|wie ?viele|cuáles|lesquel(?:le)?s|was ist)"
    r"(?: (?:(?:are|is|their|its|the|on|off|by|of|they|them|it|each|default|defaults|value|values|enabled|one|ones"
    r"|called|names?|numbers?|codes?|meanings?|paths?"
    r"|for|do|does|mean|there|standardmäßig|an) ?)*)?$|[,;]? and who(?: else)?(?: \w+){1,6}$"
)
_ENDS_OPEN = compile_pattern(r"(?i)(?:^|\s)(?:for|of|in|to|with|by|from|on|under)$")  # names nothing
# What the patterns of the tables may be put together from.
_FRAGMENTS = {
    "the": r"(?:(?:the|this|that|our|your|a|an|any|all|of|these|those|my)\s+){0,3}",
    "project": r"(?:project|repo|repository|code\s?base|code|library|package|app|application|tool|service|software"
    r"|program|thing)",
    "target": r"(?P<target>[^?!]+?)",
    # Where and when something happened.
    "place": r"(?:(?:\s+(?:made|done))?\s+(?:in|to|within|inside|under|for|with|of)\s+(?:(?:the|this|our|your)\s+)?"
    r"(?P<target>[^?!]+?))??",
    "when": r"(?:<<time>>)?",
    "time": r"\s+(?:lately|recently|of\s+late|these\s+days|so\s+far|since\s+then|(?:since|after|as\s+of"
    r"|compared\s+(?:to|with)|relative\s+to|against|versus|vs\.?)\s+(?P<since>[^?!]+?)"
    r"|(?:between|from)\s+<<noun>>(?P<from>(?:last|latest|newest)\s+(?:release|version|tag)|\S+?)<<end>>\s+"
    r"(?:and|to|until|till)\s+<<noun>>(?P<until>\S+?)<<end>>"
    r"|(?:(?:in|during|over|within|on)\s+)?(?P<period>today|yesterday|(?:last\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|this\s+(?:week|month|year)|(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)(?:\s+\d{4})?|(?:the\s+|these\s+)?(?:last|past|previous)\s+"
    r"(?:(?:\d{1,3}|few|couple\s+of|two|three|four|six)\s+)?(?:days?|weeks?|months?|quarters?|years?)))",
    # One of two commits that are compared: what can hardly be called so but a version, a branch or a commit.
    "noun": r"(?:(?:the|our)\s+)?(?:(?:tag|branch|commit|version|release|revision|pull\s+request|pr|mr)\s+)?",
    "end": r"(?:\s+(?:tag|branch|release|version))?",
    "ref": r"[`\"']?(?:main|master|develop|development|trunk|head|[#!]\d{1,7}|v?\d+(?:\.\d+)+[\w.+-]*|v\d+[\w.+-]*"
    r"|[0-9a-f]{7,40}|[\w.+]+(?:[-/@_][\w.+]+)*[-/@_]v?\d[\w.+-]*|[\w.-]+/[\w./+-]+)[`\"']?",
    "inside": r"(?:\s+(?:in|within|under|for|inside|--)\s+<<the>><<target>>)?",
    # How a question for a list begins and ends.
    "which": r"(?:what|which|list|show(?:\s+me)?|give\s+me|how\s+many|name|enumerate)(?:\s+(?:are|is))?"
    r"(?:\s+(?:all|the|of|different|available|existing|built-?in|predefined|supported|various|kinds?|types?|our"
    r"|your)){0,5}",
    "exist": r"(?:(?:are|is)\s+(?:there|available|supported|included|built\s?in|predefined|defined|provided|shipped"
    r"|known|bundled|implemented|offered)|there\s+are|exists?|(?:does|do|can)\s+(?:we|you|it|this|the|they|one|[\w.-]+)(?:\s+[\w.-]+){0,2}\s+"
    r"(?:have|has|supports?|ship|ship\s+with|come\s+with|bring|offer|provide|include|contain|know|define|return|raise"
    r"|throw|emit|give|exit\s+with)"
    r"|in\s+<<the>><<project>>)",
    "please": r"(?:[\s,]+(?:please|pls|plz|thanks|thx|bitte|por\s+favor|s'il\s+(?:te|vous)\s+pla[iî]t))?",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class KindTable:
    """One kind of question: the lookup that answers it, its patterns, and sentences that are and are not of it."""

    lookup: Lookup
    order: int
    patterns: tuple[Pattern, ...]
    asks: tuple[str, ...]
    asks_not: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class KindQuestion:
    """A question of some kind, and its named parts: the `target` it is about, a version it names."""

    lookup: Lookup
    parts: Mapping[str, str]


def parse_kind(question: str) -> KindQuestion | None:
    """Return the first kind of which a pattern fits the whole question; None where none does.

    What only adds to a list, such as "and their defaults" at the end, is left out, and so are glosses in parentheses
    where the question is of no kind with them.
    """
    line = " ".join(question[: 4 * _LONGEST].split()).strip(_ENDS)
    if not line or len(line) > _LONGEST:
        return None
    line = _ADDITION.sub("", line).strip(_ENDS) or line
    asked = _match_tables(line)
    bare = " ".join(_GLOSS.sub(" ", line).split()).strip(_ENDS)
    return asked or (_match_tables(bare) if bare != line else None)


def _match_tables(line: str) -> KindQuestion | None:
    for table in load_kinds():
        for pattern in table.patterns:
            found = pattern.fullmatch(line)
            if found is not None and not _ENDS_OPEN.search(found.groupdict().get("target") or ""):
                parts = {name: part.strip(" `'\"") for name, part in found.groupdict().items() if part}
                return KindQuestion(lookup=table.lookup, parts=parts)
    return None


@cache
def load_kinds() -> tuple[KindTable, ...]:
    """Read the tables, in the order in which they are asked."""
    folder = files("agent.questions").joinpath("kinds")
    tables = [
        _read_table(file.name.removesuffix(".toml"), file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    ]
    return tuple(sorted(tables, key=lambda table: table.order))


def compile_kinds() -> None:
    """Compile all patterns of the tables, which takes some tenths of a second, before anybody asks."""
    for table in load_kinds():
        for pattern in table.patterns:
            pattern.compile()


def _read_table(name: str, text: str) -> KindTable:
    written = tomllib.loads(text)
    return KindTable(
        lookup=cast("Lookup", name),
        order=int(written["order"]),
        patterns=tuple(_compile(pattern) for pattern in written["patterns"]),
        asks=tuple(written["asks"]),
        asks_not=tuple(written["asks_not"]),
    )


def _compile(pattern: str) -> Pattern:
    """Compile a pattern in which a space stands for any white space and `<<name>>` for a fragment."""
    for _ in range(2):  # a fragment may hold another one
        for name, fragment in _FRAGMENTS.items():
            pattern = pattern.replace(f"<<{name}>>", fragment)
    return compile_pattern(f"(?i)(?:{pattern.strip()}){_FRAGMENTS['please']}", loose=True)
