"""Narrows a list to what the words of a question say, and puts what is beside the code last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.retrieved import Retrieved
from agent.ports import SourceFiles
from agent.questions.terms import find_content_terms, match_terms, split_words
from agent.state import EvidenceRef
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Definition, RegistrationKind, RegistrationSite

DECLARED = "declared"  # of an event: where it is made, as opposed to handled
MAX_ENTRIES = 400  # that are kept; a list that is longer is counted, and cut
_SAYS_NOTHING = find_content_terms(
    "it this that the project repository app application service server tool library program package bot module"
    " available supported system everything all default value set use have there setting option flag"
    " cli binary executable command line website site codebase"
)
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
_BETWEEN = compile_pattern(r"(?i)\s*(?:,|;|/|\band\b|\bor\b|\bund\b|\boder\b|\bet\b|\bou\b)\s*")
_LEAST_OF_FILE = 2  # words
_LEAST_JOINED = 5  # letters of a word that is found in a longer one
_BUILD_FOLDERS = frozenset("extras scripts tools contrib ci hack devtools build etc".split())
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc", ".markdown")

Describe = Callable[[EvidenceRef], str]


def make_entry_ref(site: RegistrationSite) -> EvidenceRef:
    """Refer to the line that registers something, by its name."""
    found = site.registration
    ref = make_lines_ref(site.location, "entry")
    ref["symbol"], ref["kind"], ref["doc"] = found.name, found.kind, found.help
    ref["signature"] = found.handler if found.kind in {"route", "command", "event"} else found.detail
    if found.kind == "event" and (found.detail == DECLARED or not found.handler):
        ref["signature"] = found.detail
    return ref


def make_member_ref(definition: Definition) -> EvidenceRef:
    """Refer to a definition as a member of a list."""
    ref = make_lines_ref(definition.location, "entry")
    symbol = definition.symbol
    ref["symbol"], ref["kind"], ref["doc"] = symbol.qualified_name, symbol.kind, symbol.doc
    return ref


def find_narrowing_terms(parts: Mapping[str, str], repository: str) -> tuple[frozenset[str], ...]:
    """Return the words that a question narrows its list with: all at first, then those of each thing that it names.

    The repository's own name narrows nothing.
    """
    said = parts.get("target", "")
    nothing = find_content_terms(repository) | _SAYS_NOTHING
    whole, *each = (find_content_terms(text) - nothing for text in (said, *_BETWEEN.split(said)))
    return tuple(dict.fromkeys(terms for terms in (whole, *each) if terms))


def narrow_entries(refs: Sequence[EvidenceRef], alternatives: Sequence[frozenset[str]]) -> list[EvidenceRef]:
    """Return the entries that say the words, in their names and help first, else in their paths; maybe none.

    Where no entry says all of the words, each thing that the question names has its own entries.
    """
    if not alternatives:
        return list(refs)
    whole, *each = alternatives
    found = _narrow(refs, whole, least=1.0)
    of_file = _narrow_to_file(refs, whole)
    if len(of_file) > len(found) and not any(_is_said(_describe_name(ref), whole) for ref in found):
        return of_file  # a controller is meant, and not what its words are said of elsewhere
    if not found and len(each) > 1:
        kept = [ref for terms in each for ref in _narrow(refs, terms, least=1.0) or _narrow_by_name(refs, terms)]
        found = [ref for ref in refs if any(ref is one for one in kept)]
    return found or _narrow(refs, whole, least=0.5)


def narrow_to_sort(refs: Sequence[EvidenceRef], parts: Mapping[str, str]) -> list[EvidenceRef]:
    """Return the entries that say the words before the noun of a list, such as "order endpoints"; else all."""
    terms = find_content_terms(parts.get("sort", ""))
    return (_narrow(refs, terms, least=1.0) if terms else []) or list(refs)


def narrow_to_path(refs: Sequence[EvidenceRef], parts: Mapping[str, str]) -> list[EvidenceRef]:
    """Return the entries below a path of addresses that a question names, such as `/api/v3`; else all."""
    said = parts.get("target", "")
    path = next((word.strip("`'\"*").rstrip("/") for word in said.split() if word.lstrip("`'\"").startswith("/")), "")
    below = [ref for ref in refs if path and f"{path}/" in f"{ref['symbol']}/"]
    return below or list(refs)


def _narrow(refs: Sequence[EvidenceRef], terms: frozenset[str], *, least: float) -> list[EvidenceRef]:
    """Return the entries that say most of the words, where that is at least such a share of them."""
    meanings = list_meanings(terms)
    for describe in (_describe_entry, _describe_place):
        said = [count_meanings(describe(ref), meanings) for ref in refs]
        most = max(said, default=0)
        if most and most >= least * len(meanings):
            return [ref for ref, count in zip(refs, said, strict=True) if count == most]
    return []


def _narrow_to_file(refs: Sequence[EvidenceRef], terms: frozenset[str]) -> list[EvidenceRef]:
    """Return the entries of files whose own names say all of several words."""
    if len(terms) < _LEAST_OF_FILE:
        return []
    return [ref for ref in refs if _is_said(ref["path"].rpartition("/")[2].replace("_", " "), terms)]


def _is_said(text: str, terms: frozenset[str]) -> bool:
    meanings = list_meanings(terms)
    return count_meanings(text, meanings) == len(meanings)


def _describe_name(ref: EvidenceRef) -> str:
    return f"{ref['symbol']} {ref['signature']}".replace("_", " ")


def _narrow_by_name(refs: Sequence[EvidenceRef], terms: frozenset[str]) -> list[EvidenceRef]:
    meanings = list_meanings(terms)
    return [ref for ref in refs if 2 * count_meanings(ref["symbol"].replace("_", " "), meanings) >= len(meanings)]


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


def _describe_entry(ref: EvidenceRef) -> str:
    return " ".join((ref["symbol"].replace("_", " "), ref["doc"], ref["signature"].replace("_", " ")))


def _describe_place(ref: EvidenceRef) -> str:
    return f"{_describe_entry(ref)} {ref['path'].replace('_', ' ')}"


def is_aside(ref: EvidenceRef) -> bool:
    """Whether an entry stands in a test or an example; documentation is as good as code here."""
    return is_test_or_docs(ref["path"]) and not ref["path"].lower().endswith(_PROSE)


async def gather_entries(code: SourceFiles, refs: Iterable[EvidenceRef], *, whole: int) -> Retrieved:
    """Return entries as evidence: those of the code first, and how many there are of which kind; `whole` before."""
    main: list[EvidenceRef] = []
    asides: list[EvidenceRef] = []
    for ref in refs:
        (asides if is_aside(ref) else main).append(ref)
    if not main:  # the whole repository is an example
        main, asides = asides, []
    tests = {entry.path for entry in await code.files() if entry.source_type == "test"}
    totals = {"entries": len(main), "asides": len(asides), "whole": whole, "in files": len({r["path"] for r in main})}
    totals["in tests"] = int(bool(main) and all(ref["path"] in tests for ref in main))
    for ref in main:
        totals[ref["kind"]] = totals.get(ref["kind"], 0) + 1
    return Retrieved(refs=[*main, *asides][:MAX_ENTRIES], totals=totals)


def keep_one_per_name(refs: Iterable[EvidenceRef]) -> list[EvidenceRef]:
    """Join entries of one kind and name: the place that tells most stands, with what another one says of it."""
    first: dict[tuple[str, str], EvidenceRef] = {}
    for ref in sorted(refs, key=lambda ref: (is_aside(ref), not ref["signature"], is_test_or_docs(ref["path"]))):
        held = first.setdefault((ref["kind"], ref["symbol"]), ref)
        if not is_aside(ref):
            held["doc"] = held["doc"] or ref["doc"]
    return list(first.values())


def order_by_kind(refs: Iterable[EvidenceRef], kinds: Sequence[RegistrationKind]) -> list[EvidenceRef]:
    """Order entries by kind, those of one file together."""
    places = {kind: place for place, kind in enumerate(kinds)}
    listed = list(refs)
    return sorted(listed, key=lambda ref: (places.get(_to_kind(ref), 0), *_place(ref)))


def _place(ref: EvidenceRef) -> tuple[bool, bool, str, int]:
    """Return where an entry comes in a list: the code first, then what serves to build it, then documentation."""
    is_build = ref["path"].startswith(".") or ref["path"].partition("/")[0] in _BUILD_FOLDERS
    return is_test_or_docs(ref["path"]), is_build, ref["path"], ref["start_line"]


def _to_kind(ref: EvidenceRef) -> RegistrationKind:
    return next((kind for kind in _KINDS if kind == ref["kind"]), "setting")


_KINDS: tuple[RegistrationKind, ...] = (
    "route", "command", "task", "event", "model", "flag", "environment", "setting",
)  # fmt: skip
