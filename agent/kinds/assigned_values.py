"""Finds what the code itself sets something to: constants, fields and macros whose names say the question's words."""

from __future__ import annotations

from collections.abc import Sequence

from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms, match_terms, split_words
from agent.state import EvidenceRef
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Match

_LEAST_JOINED = 5  # letters of a word that is found in a longer one
_MOST_LINES = 2_000
_LEAST_WORDS, _LEAST_SHARE = 2, 0.5  # of a name that a question spells out, and of the question's words
_MOST_SHOWN = 3  # places that set one thing
# Words that names shorten, or say otherwise; by stem.
_ALIASES = (
    frozenset({"db", "databas"}),
    frozenset({"auth", "authentication", "login"}),
    frozenset({"dir", "directory", "fold"}),
    frozenset({"mail", "email", "smtp"}),
    frozenset({"max", "maximum", "limit"}),
    frozenset({"min", "minimum"}),
    frozenset({"conn", "connection"}),
    frozenset({"pass", "password"}),
    frozenset({"color", "colour"}),
    frozenset({"log", "logg"}),
)
_LITERAL = r"(?:[\"'\x60(\[]|-?\d|true\b|false\b|none\b|null\b|nil\b)"
_TYPE = r"(?:\s+(?:u?int(?:8|16|32|64)?|float(?:32|64)|string|bool|time\.Duration))?"  # of Go, behind the name
_ASSIGNED = compile_pattern(
    rf"(?i)([A-Za-z_$][\w$]*){_TYPE}\s*(?::[^=\n]{{0,60}})?(?:=|:)\s*({_LITERAL}[^;\n]{{0,120}})"
)
_DEFINED = compile_pattern(r"^\s*#\s*define\s+(\w+)\s+(\S[^\n]{0,120})")
_REMARK = compile_pattern(r"(?:^;?|\s)\s*(?://|#|/\*)\s?(.*?)(?:\*/)?\s*$")


async def find_assigned(code: CodeSearch, alternatives: Sequence[frozenset[str]]) -> list[EvidenceRef]:
    """Return the places that set what the question names; each thing by itself where no name says all words."""
    if not alternatives:
        return []
    whole, *each = alternatives
    found = await _find_for(code, whole, least=1.0 if each[1:] else 0.5)
    if not found:
        found = [ref for terms in each for ref in await _find_for(code, terms, least=0.5)]
    distinct = {(ref["path"], ref["start_line"]): ref for ref in found}
    return list(distinct.values())


async def find_named_values(code: CodeSearch, alternatives: Sequence[frozenset[str]]) -> list[EvidenceRef]:
    """Return the places that set something whose name has two words or more, and none that the question lacks."""
    terms = next(iter(alternatives), frozenset())
    meanings = list_meanings(terms)
    said = frozenset().union(*meanings)
    said |= {word[:-1] for word in said if word[-2:-1] == word[-1]}  # of "wrapping" is left "wrapp"
    bounds = [same for same in meanings if len(same) > 1]
    found = [ref for _, ref in await _rank_assignments(code, terms, least=0.0) if not is_test_or_docs(ref["path"])]
    named = [find_content_terms(ref["symbol"]) for ref in found]
    counts = [len(words) * (words <= said and all(words & same for same in bounds)) for words in named]
    most = max(counts, default=0)
    is_enough = most >= max(_LEAST_WORDS, _LEAST_SHARE * len(terms))
    return [ref for ref, count in zip(found, counts, strict=True) if is_enough and count == most][:_MOST_SHOWN]


async def _find_for(code: CodeSearch, terms: frozenset[str], *, least: float) -> list[EvidenceRef]:
    """Return the assignments whose names say most of some words, the code's before tests'."""
    ranked = await _rank_assignments(code, terms, least=least)
    return [ref for rank, ref in ranked if rank[:4] == ranked[0][0][:4]][:_MOST_SHOWN]


async def _rank_assignments(
    code: CodeSearch, terms: frozenset[str], *, least: float
) -> list[tuple[tuple[bool, int, int, bool, int], EvidenceRef]]:
    words = [word for word in sorted(terms) if word.isascii() and word.isalnum()]
    ranked: list[tuple[tuple[bool, int, int, bool, int], EvidenceRef]] = []
    if not words:
        return ranked
    meanings = list_meanings(terms)
    said = "|".join(sorted({each for same in meanings for each in same if each.isalnum()}))
    name = rf"\w{{0,60}}(?:{said})\w{{0,60}}"
    pattern = rf"(?i)#\s*define\s+{name}\s+\S|(?:^|[^\w]){name}{_TYPE}\s*(?::[^=\n]{{0,60}})?[=:]\s*{_LITERAL}"
    for match in (await code.grep(pattern, limit=_MOST_LINES)).lines:
        ref = _read_assignment(match)
        if ref is None:
            continue
        named = count_meanings(ref["symbol"].replace("_", " "), meanings)
        placed = count_meanings(f"{ref['symbol']} {ref['path']}".replace("_", " "), meanings)
        if named and placed >= least * len(meanings) and (not least or 2 * named >= len(meanings)):
            is_default = "default" in match.text.lower()
            extra = len(split_words(ref["symbol"]))
            ranked.append(((is_test_or_docs(ref["path"]), -placed, -named, not is_default, extra), ref))
    return sorted(ranked, key=lambda one: one[0])


def _read_assignment(match: Match) -> EvidenceRef | None:
    found = _DEFINED.search(match.text) or _ASSIGNED.search(match.text)
    if found is None or match.text.lstrip().startswith(("//", "*", "/*")):
        return None
    remark = _REMARK.search(found[2])
    behind = remark or _REMARK.search(match.text[found.end() :])
    value = (found[2][: remark.start()] if remark is not None else found[2]).strip().rstrip(",;")
    doc = behind[1] if behind is not None else ""
    return make_lines_ref(match.location, "entry", symbol=found[1], kind="value", signature=value, doc=doc)


def list_meanings(terms: frozenset[str]) -> list[frozenset[str]]:
    """Return each word with the others that mean the same."""
    return [next((same for same in _ALIASES if term in same), frozenset({term})) for term in sorted(terms)]


def count_meanings(text: str, meanings: Sequence[frozenset[str]]) -> int:
    """Count the meanings that a text says, in whatever word, and also within joined ones."""
    words = frozenset().union(*meanings)
    found = match_terms(text, words)
    missing = [word for word in words - found if len(word) >= _LEAST_JOINED and word in text.lower()]
    if missing:  # names join words: TELNETCONSOLE_PORT
        parts = split_words(text)
        found |= {word for word in missing if any(part.startswith(word) or part.endswith(word) for part in parts)}
    return sum(bool(found & same) for same in meanings)
