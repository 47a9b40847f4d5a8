"""Compares two commits in the part of the code that a question names, and makes evidence of the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from agent.evidence.refs import LONGEST_RANGE, make_lines_ref
from agent.history.commit_refs import UNNAMED_HORIZON, describe_shallow, format_day
from agent.history.history_target import HistoryTarget, find_target, means_everything, strip_nouns
from agent.history.released import describe_released
from agent.ports import CodeSearch
from agent.questions.mentions import is_code_like
from agent.questions.terms import find_content_terms, match_terms, stem_word
from agent.state import EvidenceRef
from agent.text.escaping import format_count
from indexer.errors import IndexerError
from indexer.types import ChangedFile, ChangedPlace, Commit, Comparison, DiffQuery, Location, Tag

MAX_PLACES = 40
_MAX_PLACES_OF_FILE = 1_000
LONGEST_DIFF = 12_000  # characters
_MAX_PATHS = 20
MAX_FILES = 60
_NAMED_FILES = 12  # for a model, beside the places themselves
END = "end"  # the kind of evidence that is one of the two commits
FILE, ADDED, REMOVED = "file", "added", "removed"  # kinds of evidence in the role `change`


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedPart:
    """A comparison and its limits: `paths`, or a definition; `asked` is a name without a match."""

    comparison: Comparison
    paths: tuple[str, ...] = ()
    target: HistoryTarget = field(default_factory=HistoryTarget)
    asked: str = ""
    lines: tuple[int, int] | None = None


async def compare_part(code: CodeSearch, after: str, until: str, written: str) -> ComparedPart:
    """Compare two commits in the part that words name; `UnknownRevision` if one of them is missing.

    If nothing has that name, neither in the code nor among the changes, compare everything.
    """
    query = DiffQuery(after=after, until=until, limit=0 if written else MAX_PLACES)
    whole = await code.past.compare(query)
    bare = strip_nouns(written)
    if whole.older.sha == whole.newer.sha or means_everything(bare, code.repository):
        return ComparedPart(comparison=whole if not written else await _compare_again(code, whole))
    found = await _find_part(code, written, bare, whole.files)
    if found is None:
        return ComparedPart(comparison=await _compare_again(code, whole), asked=bare)
    paths, target = found
    # The lines of a definition are known at the commit that is read alone.
    lines = target.lines if whole.newer.sha == code.commit.sha else None
    comparison = await _compare_again(code, whole, paths=paths, lines=lines)
    return ComparedPart(comparison=comparison, paths=paths, target=target, lines=lines)


async def read_whole_diff(code: CodeSearch, part: ComparedPart) -> ComparedPart | None:
    """Return the whole comparison of one file, trivial changes included; None if it is too long."""
    if len(part.comparison.files) != 1:
        return None
    path = part.comparison.files[0].path
    found = await _compare_again(code, part.comparison, paths=(path,), lines=part.lines, is_whole=True)
    places = tuple(place for place in found.places if not place.trivial) or found.places
    if sum(len(line) + 7 for place in places for line in (*place.removed, *place.added)) > LONGEST_DIFF:
        return None
    return replace(part, comparison=replace(found, places=places))


async def _compare_again(
    code: CodeSearch,
    whole: Comparison,
    *,
    paths: tuple[str, ...] = (),
    lines: tuple[int, int] | None = None,
    is_whole: bool = False,
) -> Comparison:
    """Compare the same commits by id; their displayed names stay."""
    query = DiffQuery(
        after=whole.older.sha,
        until=whole.newer.sha,
        paths=paths,
        lines=lines,
        limit=_MAX_PLACES_OF_FILE if is_whole else MAX_PLACES,
        is_whole=is_whole,
    )
    again = await code.past.compare(query)
    return Comparison(
        older=whole.older,
        newer=whole.newer,
        base=again.base,
        ahead=again.ahead,
        behind=again.behind,
        files=again.files,
        places=again.places,
        total=again.total,
        folded=again.folded,
        is_complete=again.is_complete,
        is_shallow=again.is_shallow,
    )


async def _find_part(
    code: CodeSearch, written: str, bare: str, files: Sequence[ChangedFile]
) -> tuple[tuple[str, ...], HistoryTarget] | None:
    """Find the named part: an exact name, then the index's matches, then similar ones."""
    is_word = " " not in bare and not is_code_like(bare)
    if is_word and (named := _find_named(bare, files)):
        return named, HistoryTarget()
    target = await find_target(code, written)
    if target is not None and target.path and not target.is_guess:
        return (target.path,), target
    terms = find_content_terms(bare)
    alike = [one.path for one in files if terms and match_terms(f"{one.path} {one.former}", terms) == terms]
    if alike:
        return tuple(alike[:_MAX_PATHS]), HistoryTarget()
    changed = {one.path for one in files}
    if target is not None and target.is_guess and target.path in changed:
        return (target.path,), target
    return None


def _find_named(word: str, files: Sequence[ChangedFile]) -> tuple[str, ...]:
    """Find changed folders and files by name, or by another form of it."""
    wanted, stem = word.lower(), stem_word(word.lower())
    return _find_paths(files, lambda name: name == wanted) or _find_paths(files, lambda name: stem_word(name) == stem)


def _find_paths(files: Sequence[ChangedFile], fits: Callable[[str], bool]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for path in (name for one in files for name in (one.path, one.former) if name):
        parts = PurePosixPath(path).parts
        folder = next((at for at, part in enumerate(parts[:-1]) if fits(part.lower())), None)
        if folder is not None:
            found["/".join(parts[: folder + 1])] = None
        elif fits(PurePosixPath(parts[-1]).stem.lower()) or fits(parts[-1].lower()):
            found[path] = None
    return tuple(found)[:_MAX_PATHS]


async def make_comparison_refs(code: CodeSearch, part: ComparedPart) -> list[EvidenceRef]:
    """Refer to the changed files and then to their places: removed lines before their replacements.

    References to both sides of one place have the same number as their signature.
    """
    comparison = part.comparison
    files = [_make_file_ref(one, comparison, code.commit.sha) for one in comparison.files[:MAX_FILES]]
    places: list[EvidenceRef] = []
    for number, place in enumerate(comparison.places, 1):
        name = await _find_name(code, place, comparison)
        places += _make_place_refs(place, comparison, code.commit.sha, name=name, number=number)
    return [*files, *places]


def make_end_refs(part: ComparedPart, held: Commit) -> list[EvidenceRef]:
    """Refer to the two commits themselves, the older one first."""
    return [
        make_lines_ref(
            Location(path="", start_line=0, end_line=0, commit=tag.sha),
            "entry",
            symbol=_name_end(tag, held),
            kind=END,
            signature=format_day(tag.created_at) if tag.created_at else "",
        )
        for tag in (part.comparison.older, part.comparison.newer)
    ]


def _make_file_ref(one: ChangedFile, comparison: Comparison, held: str) -> EvidenceRef:
    """Refer to a file by its first differing line, on the older side if it was removed."""
    is_gone = one.fate == "removed"
    first = next((place for place in comparison.places if place.path == one.path), None)
    line = (first.old_line if is_gone else first.new_line) if first is not None else 1
    commit = comparison.start if is_gone else comparison.newer.sha
    return make_lines_ref(
        _locate(one.path, max(line, 1), 1, "" if commit == held else commit),
        "change",
        kind=FILE,
        symbol=one.path,
        source_type=one.source_type,
        signature=f"renamed from {one.former}" if one.former else "" if one.fate == "changed" else one.fate,
        doc="" if one.added is None or one.removed is None else f"+{one.added:,} −{one.removed:,}",
    )


def _make_place_refs(
    place: ChangedPlace, comparison: Comparison, held: str, *, name: str, number: int
) -> list[EvidenceRef]:
    sides = (
        (REMOVED, place.former, place.old_line, place.removed_count, comparison.start, place.removed),
        (ADDED, place.path, place.new_line, place.added_count, comparison.newer.sha, place.added),
    )
    return [
        make_lines_ref(
            _locate(path, first, count, "" if commit == held else commit),
            "change",
            kind=kind,
            symbol=name,
            signature=str(number),
            doc="\n".join(lines),
        )
        for kind, path, first, count, commit, lines in sides
        if count
    ]


def _locate(path: str, first: int, count: int, commit: str) -> Location:
    return Location(path=path, start_line=first, end_line=first + min(count, LONGEST_RANGE) - 1, commit=commit)


async def _find_name(code: CodeSearch, place: ChangedPlace, comparison: Comparison) -> str:
    """Name the innermost definition around the first line of a place, if the newer side is read."""
    if comparison.newer.sha != code.commit.sha or not place.new_line:
        return ""
    line = place.new_line
    try:
        around = await code.find_enclosing(Location(path=place.path, start_line=line, end_line=line))
    except IndexerError:  # it was parsed by nobody
        return ""
    return around[-1].symbol.qualified_name if around else ""


def describe_comparison(part: ComparedPart, held: Commit) -> dict[str, str]:
    """Describe a comparison and its limits in words."""
    comparison = part.comparison
    facts = {"compared": "yes", "target": part.target.symbol or "\n".join(part.paths)}
    for name, tag in (("after", comparison.older), ("until", comparison.newer)):
        facts[name] = _name_end(tag, held)
    if part.asked:
        facts["nothing is called"] = part.asked
    if part.target.is_guess:
        facts["guess"] = "yes"
    if comparison.older.sha == comparison.newer.sha:
        facts["same"] = comparison.newer.sha
    elif not comparison.base:
        facts["common commit"] = "none is known"
    elif comparison.has_diverged:
        facts["parted at"] = comparison.base
    if comparison.folded:
        facts["not shown"] = ", ".join(f"{count:,} {reason}" for reason, count in comparison.folded)
    if comparison.is_shallow:
        facts["shallow"] = UNNAMED_HORIZON
    if not comparison.is_complete:
        facts["incomplete"] = "yes"
    return facts | {
        f"changed {one.path}": f"{one.fate}, +{one.added} -{one.removed}" if one.added is not None else one.fate
        for one in comparison.files[:_NAMED_FILES]
    }


def _name_end(tag: Tag, held: Commit) -> str:
    """Write one end of a comparison for people; the current commit has no name in the question."""
    return (held.branch or held.sha[:12]) if tag.name == "HEAD" and tag.sha == held.sha else tag.name


def count_comparison(comparison: Comparison) -> dict[str, int]:
    """Count the differences."""
    return {
        "files changed": comparison.total,
        "lines added": sum(one.added or 0 for one in comparison.files),
        "lines removed": sum(one.removed or 0 for one in comparison.files),
        "only in the newer": comparison.ahead or 0,
        "only in the older": comparison.behind or 0,
    }


_MAX_FILES = 12


def describe_history(facts: Mapping[str, str], totals: Mapping[str, int]) -> list[str]:
    """Return the sentences; none if nothing is known of the past."""
    return [
        *_describe_scope(facts), *_describe_counts(facts, totals), *describe_released(facts), *_describe_gaps(facts)
    ]  # fmt: skip


def _describe_scope(facts: Mapping[str, str]) -> Iterator[str]:
    if facts.get("problem"):
        yield facts["problem"]
    if facts.get("untagged"):
        yield f"There is no tag {facts['untagged']}; the changelog has a section on it."
    if facts.get("nothing is called"):
        yield f"Nothing in the code or among the changes is called {facts['nothing is called']}."
    targets = " and ".join(facts.get("target", "").split("\n")[:3])
    if targets:
        guess = ", found by a search for the words of the question" if facts.get("guess") else ""
        yield f"The history is that of {targets}{'/' * bool(facts.get('folder'))}{guess}."
    if facts.get("former"):
        yield f"{facts['former']} is now called {targets}."
    if facts.get("gone"):
        yield f"There is no {targets} any more; the newest of its commits removed or renamed it."
    yield from _describe_ends(facts)
    if facts.get("owners"):
        yield f"CODEOWNERS gives {facts['pattern']} to {', '.join(facts['owners'].split())}."


def _describe_ends(facts: Mapping[str, str]) -> Iterator[str]:
    ends = [
        f"{word} {facts[name]}" + (f" of {facts[f'{name} day']}" if facts.get(f"{name} day") else "")
        for name, word in (("after", "from"), ("until", "to"))
        if facts.get(name)
    ]
    if facts.get("same"):
        yield f"{facts['after']} and {facts['until']} are the same commit, {facts['same'][:12]}."
    elif ends:
        yield f"It goes {' '.join(ends)}."
    elif facts.get("said"):
        yield f"What was asked for: {facts['said']}."


def _describe_counts(facts: Mapping[str, str], totals: Mapping[str, int]) -> Iterator[str]:
    if totals.get("commits"):
        by = f", by {format_count(totals['people'], 'person', 'people')}" if totals.get("people") else ""
        days = f", from {facts['oldest']} to {facts['newest']}" if facts.get("newest") else ""
        yield f"{format_count(totals['commits'], 'commit')}{by}{days}."
    touched = [
        f"{name.partition(' ')[2]} ({count:,})" for name, count in totals.items() if name.startswith(("area ", "file "))
    ]
    if touched:
        newest = f" of the newest {totals['counted']:,}" if totals.get("counted", 0) < totals.get("commits", 0) else ""
        yield f"Most commits{newest} touch {', '.join(touched)}."
    if "files changed" in totals and not facts.get("same"):
        lines = f"+{totals.get('lines added', 0):,} −{totals.get('lines removed', 0):,} lines"
        yield f"{format_count(totals['files changed'], 'file')} changed, {lines}."
    changed = [(name[8:], said) for name, said in facts.items() if name.startswith("changed ")]
    yield from (f"{path}: {said}." for path, said in changed[:_MAX_FILES])
    if facts.get("common commit"):
        yield "The two have no commit in common, so their files are compared as they are."
    if facts.get("parted at"):
        own = format_count(totals.get("only in the older", 0), "commit")
        yield (
            f"The branches diverged at {facts['parted at'][:12]}; only changes on {facts['until']} are shown, not the "
            f"{own} on {facts['after']} alone."
        )


def _describe_gaps(facts: Mapping[str, str]) -> Iterator[str]:
    if facts.get("not shown"):
        yield f"Not shown, because they are not indexed: {facts['not shown']}."
    if facts.get("shallow"):
        yield describe_shallow(facts["shallow"])
    if facts.get("incomplete"):
        yield "There is too much to compare it all."
