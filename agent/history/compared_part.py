"""Compares two commits in the part of the code that a question is about, as the index and the changes name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from agent.history.history_target import HistoryTarget, find_target, means_everything, strip_nouns
from agent.ports import CodeSearch
from agent.questions.mentions import is_code_like
from agent.questions.terms import find_content_terms, match_terms, stem_word
from indexer.types import ChangedFile, Comparison, DiffQuery

MOST_PLACES = 40
_MOST_PATHS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedPart:
    """A comparison, and what it was limited to: `paths`, or a definition; `asked` is what nothing is called."""

    comparison: Comparison
    paths: tuple[str, ...] = ()
    target: HistoryTarget = field(default_factory=HistoryTarget)
    asked: str = ""


async def compare_part(code: CodeSearch, after: str, until: str, written: str) -> ComparedPart:
    """Compare two commits where words say; `UnknownRevision` where one of them is not there.

    Where nothing is called so, neither in the code nor among the changes, everything is compared.
    """
    query = DiffQuery(after=after, until=until, limit=0 if written else MOST_PLACES)
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
    return ComparedPart(comparison=comparison, paths=paths, target=target)


async def _compare_again(
    code: CodeSearch, whole: Comparison, *, paths: tuple[str, ...] = (), lines: tuple[int, int] | None = None
) -> Comparison:
    """Compare the same commits, by their ids; what people call them stays."""
    query = DiffQuery(after=whole.older.sha, until=whole.newer.sha, paths=paths, lines=lines, limit=MOST_PLACES)
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
    """Find what is meant: what is called just so, then what the index has of that name, then what sounds like it."""
    is_word = " " not in bare and not is_code_like(bare)
    if is_word and (named := _find_named(bare, files)):
        return named, HistoryTarget()
    target = await find_target(code, written)
    if target is not None and target.path and not target.is_guess:
        return (target.path,), target
    terms = find_content_terms(bare)
    alike = [one.path for one in files if terms and match_terms(f"{one.path} {one.former}", terms) == terms]
    if alike:
        return tuple(alike[:_MOST_PATHS]), HistoryTarget()
    changed = {one.path for one in files}
    if target is not None and target.is_guess and target.path in changed:
        return (target.path,), target
    return None


def _find_named(word: str, files: Sequence[ChangedFile]) -> tuple[str, ...]:
    """Find the folders and files among the changes that are called so; else those that another form of it names."""
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
    return tuple(found)[:_MOST_PATHS]
