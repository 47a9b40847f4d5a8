"""Lists the indexed files that differ between two commits, with the number of added and removed lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from indexer.diffs.patch import RawChange, read_raw
from indexer.git.git_command import GitCommand, decode_output
from indexer.git.objects import TreeEntry
from indexer.git.repository import Repository
from indexer.search.path_traits import read_path_traits
from indexer.types import ChangedFile

MAX_FILES = 20_000  # that are looked at
_TIMEOUT_SECONDS = 10.0
_MAX_RENAMES = 500  # of which git compares the contents
_OPTIONS = ("-r", "-z", "-M", f"-l{_MAX_RENAMES}", "--no-ext-diff", "--no-textconv")
_SIDE_WEIGHTS = {"code": 0, "config": 1, "test": 2, "doc": 3}


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDifference:
    """A changed file: its name, and its contents on both sides; None on the side without it."""

    change: ChangedFile
    old: TreeEntry | None
    new: TreeEntry | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDifferences:
    """The changed files, the most telling first; `folded` counts unindexed ones, by reason."""

    files: Sequence[FileDifference]
    folded: Counter[str]
    is_complete: bool


def list_differences(repository: Repository, older: str, newer: str, paths: Sequence[str]) -> FileDifferences:
    """List the files below some paths, or all, that differ between two commits, given by their ids.

    Files that the rules omit from the index on either side are counted, and neither named nor read.
    """
    output = repository.git.try_run(
        "diff-tree", "--raw", "--no-abbrev", *_OPTIONS, older, newer, "--", seconds=_TIMEOUT_SECONDS
    )
    raws = [raw for raw in read_raw(output or b"") if _is_below(raw, paths)]
    chosen = raws[:MAX_FILES]
    listings = (
        _list_side(repository, older, [raw.old for raw in chosen if raw.old]),
        _list_side(repository, newer, [raw.new for raw in chosen if raw.new]),
    )
    folded: Counter[str] = Counter()
    kept: list[FileDifference] = []
    for raw in chosen:
        found = _judge(raw, *listings)
        if isinstance(found, str):
            folded[found] += 1
        else:
            kept.append(found)
    counted = _count_lines(repository.git, older, newer, kept)
    files = sorted(counted, key=_rank)
    return FileDifferences(files=files, folded=folded, is_complete=output is not None and len(raws) <= MAX_FILES)


def _is_below(raw: RawChange, paths: Sequence[str]) -> bool:
    names = [decode_output(name) for name in (raw.old, raw.new) if name]
    return not paths or any(f"{name}/".startswith(f"{path}/") for name in names for path in paths)


def _list_side(repository: Repository, sha: str, names: Sequence[bytes]) -> Mapping[str, TreeEntry | str]:
    """Return the rules' decisions about the files of one commit: which to read, and why others are omitted."""
    listing = repository.list_paths(sha, names)
    return {one.path: one for one in listing.entries} | {one.path: one.reason for one in listing.omissions}


def _judge(
    raw: RawChange, older: Mapping[str, TreeEntry | str], newer: Mapping[str, TreeEntry | str]
) -> FileDifference | str:
    """Return the contents of both sides, or the reason for not showing them."""
    found: list[TreeEntry | None] = []
    for name, side in ((raw.old, older), (raw.new, newer)):
        entry = side.get(decode_output(name), "not indexed") if name else None
        if isinstance(entry, str):
            return entry
        found.append(entry)
    old, new = found
    path = (new or old or TreeEntry(path="", blob="", size=0)).path
    former = old.path if old is not None and old.path != path else ""
    source_type = read_path_traits(path).source_type
    return FileDifference(
        change=ChangedFile(path=path, fate=raw.fate, source_type=source_type, former=former), old=old, new=new
    )


def _count_lines(git: GitCommand, older: str, newer: str, files: Sequence[FileDifference]) -> Iterable[FileDifference]:
    """Count each file's added and removed lines; they stay unknown if git takes too long."""
    if not files:
        return files
    output = git.try_run("diff-tree", "--numstat", *_OPTIONS, older, newer, "--", seconds=_TIMEOUT_SECONDS)
    counts = dict(_read_counts(output or b""))
    return [
        replace(one, change=replace(one.change, added=counts[one.change.path][0], removed=counts[one.change.path][1]))
        if one.change.path in counts
        else one
        for one in files
    ]


def _read_counts(output: bytes) -> Iterator[tuple[str, tuple[int | None, int | None]]]:
    """Read the output of `git diff-tree --numstat -z`; for a renamed file both names follow separately."""
    fields = iter(output.split(b"\0"))
    for field in fields:
        added, _, rest = field.partition(b"\t")
        removed, tab, name = rest.partition(b"\t")
        if not tab:
            continue
        if not name:
            next(fields, b"")
            name = next(fields, b"")
        yield decode_output(name), (_read_count(added), _read_count(removed))


def _read_count(digits: bytes) -> int | None:
    return int(digits) if digits.isdigit() else None


def _rank(one: FileDifference) -> tuple[int, int, str]:
    """Sort code first, and the largest changes first."""
    change = one.change
    weight = _SIDE_WEIGHTS.get(change.source_type, 0) + 4 * read_path_traits(change.path).is_secondary
    return weight, -((change.added or 0) + (change.removed or 0)), change.path
