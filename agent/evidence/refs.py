"""Turns results of the index into references to evidence, in reading order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from agent.ports import Deps
from agent.state import EvidenceRef, Role, to_location
from agent.text.escaping import is_import, replace_control_characters
from indexer.types import CallSite, Definition, Hit, Location

LONGEST_RANGE = 200
IMPORTS = "imports"  # the kind of a hit that only takes names from elsewhere
_IMPORT_SHARE = 0.7  # of its lines

_SIDE_FOLDER = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|spec|specs|mocks?|__mocks__|fixtures?|examples?|samples?|demos?|benches|benchmarks?|docs?|www)(?:/|$)",
    re.IGNORECASE,
)
_PACKAGES = "src/main/"
_SIDE_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|conftest\.py|mocks?\.\w+|[^/]*(?:_test|_spec|\.test|\.spec|[a-z]Tests?)\.\w+|[^/]*\.(?:md|rst|txt|adoc))$"
)
MAX_LINES_OF_PLACE = 4  # more calls in one function say nothing new


def tell_places(deps: Deps, refs: Iterable[EvidenceRef]) -> None:
    """Tell listeners about found places, and their addresses."""
    places = [to_location(ref) for ref in refs if ref["path"]]
    deps.emit("evidence", locations=places, urls=[deps.code.permalink(place) for place in places])


def make_lines_ref(
    location: Location,
    role: Role,
    *,
    language: str = "",
    score: float = 1.0,
    source_type: str = "",
    symbol: str = "",
    kind: str = "",
    signature: str = "",
    doc: str = "",
) -> EvidenceRef:
    """Refer to lines of a file, or to a commit."""
    ref: EvidenceRef = {
        "path": location.path,
        "start_line": location.start_line,
        "end_line": location.end_line,
        "role": role,
        "score": score,
        "language": language,
        "source_type": source_type,
        "symbol": symbol,
        "kind": kind,
        "signature": signature,
        "doc": doc,
        "ambiguous": False,
    }
    return {**ref, "commit": location.commit} if location.commit else ref


def make_cited_ref(location: Location) -> EvidenceRef:
    """Refer again to a cited place; one at another commit cannot be read here, only cited."""
    return make_lines_ref(location, "lines" if not location.commit else "change" if location.path else "commit")


def format_place(ref: EvidenceRef) -> str:
    """Name the lines, or the commit, of a reference; the name is the same in every result of a commit."""
    if not ref["path"]:
        return f"commit {ref.get('commit', '')[:12]}"
    start, end, commit = ref["start_line"], ref["end_line"], ref.get("commit", "")
    where = f" at {commit[:12]}" if commit else ""
    return f"{ref['path']}:L{start}{where}" if start == end else f"{ref['path']}:L{start}-L{end}{where}"


def make_definition_ref(definition: Definition, role: Role = "definition") -> EvidenceRef:
    """Refer to the whole of a definition."""
    symbol = definition.symbol
    return make_lines_ref(
        definition.location,
        role,
        symbol=symbol.qualified_name,
        kind=symbol.kind,
        signature=symbol.signature,
        doc=symbol.doc,
    )


def make_hit_ref(hit: Hit) -> EvidenceRef:
    """Refer to a search hit; its symbol is the innermost definition around its first line."""
    return make_lines_ref(
        hit.location,
        "hit",
        language=hit.language,
        score=hit.score,
        source_type=hit.source_type,
        symbol=hit.scope,
        kind=IMPORTS if not hit.scope and _holds_imports(hit.text) else "",
    )


def _holds_imports(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip(" )}];,")]
    return sum(map(is_import, lines)) >= _IMPORT_SHARE * len(lines)


def make_call_ref(site: CallSite, role: Role) -> EvidenceRef:
    """Refer to the line of a call; the symbol is at its other end."""
    other = site.caller if role == "caller" else site.callee
    at = Location(path=site.path, start_line=site.line, end_line=site.line)
    known = make_lines_ref(at, role, symbol=site.name if role == "callee" else "")
    if other is not None:
        known = {**make_definition_ref(other, role), "start_line": site.line, "end_line": site.line, "path": site.path}
    return {**known, "ambiguous": site.ambiguous}


def is_within(inner: Location, outer: Location) -> bool:
    """Whether some lines are part of others."""
    is_same = (inner.path, inner.commit) == (outer.path, outer.commit)
    return is_same and outer.start_line <= inner.start_line and inner.end_line <= outer.end_line


def is_overlapping(one: Location, other: Location) -> bool:
    """Whether some lines are among others."""
    is_same = (one.path, one.commit) == (other.path, other.commit)
    return is_same and one.start_line <= other.end_line and other.start_line <= one.end_line


def is_test_or_docs(path: str) -> bool:
    """Whether a file is about the code rather than the code itself: a test, an example, a mock, documentation."""
    outside = path.partition(_PACKAGES)[0]  # below it, folders are named by packages: `org/acme/samples`
    return bool(_SIDE_FILE.search(path) or _SIDE_FOLDER.search(outside))


def sort_code_first(refs: Iterable[EvidenceRef]) -> list[EvidenceRef]:
    """Put code before other files, each in its order."""
    return sorted(refs, key=lambda ref: is_test_or_docs(ref["path"]))


def sort_definitions(definitions: Sequence[Definition], patterns: Sequence[str]) -> list[Definition]:
    """Order definitions of one name: by the patterns, code first, outer first; overloads only once."""
    fitting = [one for one in definitions if any(fnmatch(f"/{one.path}".lower(), glob.lower()) for glob in patterns)]
    made = [one for one in definitions if not is_import_line(one.symbol.kind, one.symbol.signature)]
    longest: dict[tuple[str, str], Definition] = {}
    for one in fitting or made or definitions:
        key = (one.path, one.symbol.qualified_name)
        held = longest.get(key)
        if held is None or _count_lines(one) > _count_lines(held):
            longest[key] = one
    # A name that is written with its module (`tokio::spawn`) is no method.
    return sorted(
        longest.values(), key=lambda one: (is_test_or_docs(one.path), bool(patterns) and one.symbol.kind == "method")
    )


def is_import_line(kind: str, signature: str) -> bool:
    """Whether an indexed constant only imports a name (`const x = require("x")`)."""
    return kind == "constant" and "require(" in signature


def _count_lines(definition: Definition) -> int:
    return definition.symbol.end_line - definition.symbol.start_line


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """Masked and printable lines of the repository, with the number of the first."""

    lines: list[str]
    first_line: int
    language: str


async def read_quote(deps: Deps, location: Location) -> Quote:
    """Read lines at the pinned commit; masking never changes their number."""
    passage = await deps.code.read(location.path, location.start_line, location.end_line)
    return make_quote(deps, passage.text, first_line=passage.location.start_line, language=passage.language)


def make_quote(deps: Deps, text: str, *, first_line: int, language: str) -> Quote:
    """Mask lines that were read, and make them printable."""
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    masked = deps.redact("\n".join(lines)).split("\n")
    return Quote(lines=[replace_control_characters(line) for line in masked], first_line=first_line, language=language)


def make_call_refs(sites: Sequence[CallSite], role: Role) -> list[EvidenceRef]:
    """Refer to each calling line once, code first, and certain calls before possible ones.

    A call that may mean several definitions is one site for each of them.
    """
    refs: dict[tuple[str, int, str], EvidenceRef] = {}
    targets: Counter[tuple[str, int, str, Definition | None]] = Counter()
    for site in sites:
        line = (site.path, site.line, site.name)
        targets[*line, site.callee] += 1
        ref = refs.setdefault(line, make_call_ref(site, role))
        if targets[*line, site.callee] > 1:
            ref["calls"] = max(count_calls([ref]), targets[*line, site.callee])
    return sorted(refs.values(), key=lambda ref: (is_test_or_docs(ref["path"]), ref["ambiguous"]))


def count_calls(refs: Iterable[EvidenceRef]) -> int:
    """Count the calls on some lines."""
    return sum(ref.get("calls", 1) for ref in refs)


def count_by_definition(definitions: Sequence[EvidenceRef], sites: Iterable[CallSite]) -> list[EvidenceRef]:
    """Count for each definition the calls that are certainly its own, the most called one first."""
    called = Counter(
        (site.callee.path, site.callee.symbol.qualified_name)
        for site in sites
        if site.callee is not None and not site.ambiguous
    )
    counted: list[EvidenceRef] = [{**ref, "calls": called[ref["path"], ref["symbol"]]} for ref in definitions]
    return sorted(counted, key=lambda ref: -ref["calls"])


def group_by_place(refs: Sequence[EvidenceRef]) -> list[list[EvidenceRef]]:
    """Group the calls by their calling or called function, in order."""
    places: dict[tuple[str, str, bool], list[EvidenceRef]] = {}
    for ref in refs:
        places.setdefault((ref["path"], ref["symbol"], ref["ambiguous"]), []).append(ref)
    return list(places.values())


def take_places(refs: Sequence[EvidenceRef], most: int) -> list[EvidenceRef]:
    """Take the calls of the first places, a few of each."""
    return [ref for place in group_by_place(refs)[:most] for ref in place[:MAX_LINES_OF_PLACE]]
