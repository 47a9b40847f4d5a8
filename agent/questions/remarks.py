"""Recognises small talk, and questions without a subject, by a table."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Literal

from agent.questions.mentions import find_mentions
from agent.questions.terms import UNSPACED

SaidKind = Literal["greeting", "thanks", "farewell", "remark"]
RemarkKind = Literal[SaidKind, "statement", "stop", "bare"]

LONGEST = 200  # characters; what is longer says something
_FILE = Path(__file__).with_name("remarks.toml")
# Of several, the kind of a message: "ok, thanks, bye" is answered as thanks.
_ORDER: tuple[SaidKind, ...] = ("thanks", "greeting", "farewell", "remark")
_MAX_WORDS = 15  # of what somebody is going to do
_SAID = frozenset(_ORDER)

_EMOJI_NAMES = re.compile(r"(?<![\w:]):[a-z0-9_+'-]{1,40}:", re.IGNORECASE)
_WORDS = re.compile(r"[+-]?\w+(?:['’-]\w+)*\+?")
# People and channels as they are written; a name that is not known to be one, only before other words.
_CALLS = re.compile(r"(?<!\S)(?:@(?:someone|here|channel|everyone)|#channel)\b|^@[\w.-]{1,40}\s(?=\s*\w)")
_ASKS = re.compile("[?？]")


@dataclass(frozen=True, kw_only=True, slots=True)
class RemarkRule:
    """One entry of the table: see the beginning of the file."""

    kind: RemarkKind
    says: tuple[str, ...]
    fills: tuple[str, ...]
    begins: tuple[str, ...]
    examples: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Phrases:
    """Phrases in their plain form, with their kinds; fillers have none."""

    kinds: Mapping[str, RemarkKind | None]
    longest: int

    def read(self, text: str) -> set[RemarkKind] | None:
        """Return the kinds of the phrases in a text; None if it says anything else."""
        reached: dict[int, set[RemarkKind]] = {0: set()}
        for at in range(len(text)):
            if at not in reached:
                continue
            for end in range(at + 1, min(len(text), at + self.longest) + 1):
                phrase = text[at:end]
                if phrase not in self.kinds or not _is_boundary(text, end):
                    continue
                kind = self.kinds[phrase]
                after = end + (text[end : end + 1] == " ")
                reached.setdefault(after, set()).update(reached[at], () if kind is None else (kind,))
        return reached.get(len(text))


@dataclass(frozen=True, kw_only=True, slots=True)
class RemarkTable:
    """The table of remarks, ready for lookups."""

    rules: tuple[RemarkRule, ...]
    remarks: _Phrases
    statements: _Phrases
    stops: _Phrases
    bare: _Phrases
    begins: tuple[str, ...]
    tells: tuple[str, ...]
    asks: frozenset[str]
    wants: tuple[str, ...]


def find_remark(text: str) -> SaidKind | None:
    """Return the kind of a remark; None for everything else, such as a question."""
    if len(text) > LONGEST or _ASKS.search(text):
        return None
    table, plain = load_remarks(), _make_plain(text)
    if not plain:  # emoji, by their names
        return "remark"
    kinds = table.remarks.read(plain)
    if kinds:
        return next(kind for kind in _ORDER if kind in kinds)
    return "remark" if _is_plan(text, plain, table) else None


def is_bare_question(text: str) -> bool:
    """Whether a message asks without naming its subject: "any idea?"."""
    if len(text) > LONGEST:
        return False
    plain = _make_plain(_CALLS.sub(" ", text))
    return not plain or bool(load_remarks().bare.read(plain))


def is_statement(text: str) -> bool:
    """Whether a message only states something, or that an answer is wrong; asks nothing, and names no code."""
    if len(text) > LONGEST or _ASKS.search(text):
        return False
    table, plain = load_remarks(), _make_plain(text)
    if table.statements.read(plain):
        return True
    words = plain.split()
    is_request = not table.asks.isdisjoint(words) or any(f" {want} " in f" {plain} " for want in table.wants)
    if is_request or find_mentions(text).anything:
        return False
    return _begins_with(_skip_remarks(words, table, table.tells), table.tells)


def is_stop_request(text: str) -> bool:
    """Whether a message only wants the answer in progress to end."""
    return len(text) <= LONGEST and not _ASKS.search(text) and bool(load_remarks().stops.read(_make_plain(text)))


def _is_plan(text: str, plain: str, table: RemarkTable) -> bool:
    """Whether somebody announces or reports their own work, without naming code or asking."""
    words = plain.split()
    if len(words) > _MAX_WORDS or not _begins_with(_skip_remarks(words, table, table.begins), table.begins):
        return False
    return table.asks.isdisjoint(words) and not find_mentions(text).anything


def _begins_with(text: str, begins: tuple[str, ...]) -> bool:
    return f"{text} ".startswith(begins)


def _skip_remarks(words: Sequence[str], table: RemarkTable, begins: tuple[str, ...]) -> str:
    """Return the text after its opening remarks, as in "oh well, I'll try"."""
    for count in range(len(words) - 1, 0, -1):
        rest = " ".join(words[count:])
        if _begins_with(rest, begins) and table.remarks.read(" ".join(words[:count])) is not None:
            return rest
    return " ".join(words)


@cache
def load_remarks() -> RemarkTable:
    """Read the table."""
    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    rules = tuple(
        RemarkRule(kind=entry["kind"], **{name: tuple(entry.get(name, ())) for name in _LISTS})
        for entry in content["remarks"]
    )
    return RemarkTable(
        rules=rules,
        remarks=_collect(rule for rule in rules if rule.kind in _SAID),
        statements=_collect(rule for rule in rules if rule.kind in _SAID or rule.kind == "statement"),
        stops=_collect(rule for rule in rules if rule.kind == "stop"),
        bare=_collect(rule for rule in rules if rule.kind == "bare"),
        begins=tuple(f"{_make_plain(phrase)} " for rule in rules if rule.kind in _SAID for phrase in rule.begins),
        tells=tuple(f"{_make_plain(phrase)} " for rule in rules if rule.kind == "statement" for phrase in rule.begins),
        asks=frozenset(_make_plain(word) for word in content["asks"]),
        wants=tuple(map(_make_plain, content["wants"])),
    )


_LISTS: Sequence[str] = ("says", "fills", "begins", "examples", "others")


def _collect(rules: Iterable[RemarkRule]) -> _Phrases:
    chosen = list(rules)
    kinds: dict[str, RemarkKind | None] = {_make_plain(phrase): None for rule in chosen for phrase in rule.fills}
    kinds |= {_make_plain(phrase): rule.kind for rule in reversed(chosen) for phrase in rule.says}
    return _Phrases(kinds=kinds, longest=max(map(len, kinds)))


def _make_plain(text: str) -> str:
    """Return only the words: no case, punctuation, emoji or repeated letters."""
    words = _WORDS.findall(_EMOJI_NAMES.sub(" ", text[: 4 * LONGEST]).replace("’", "'").lower())
    return "".join(letter for letter, _ in groupby(" ".join(words)))


def _is_boundary(text: str, end: int) -> bool:
    """Whether a word ends here; some languages have no spaces between words."""
    return text[end : end + 1] in {"", " "} or UNSPACED.match(text[end - 1]) is not None
