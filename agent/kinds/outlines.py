"""Lists what is in a folder: its folders with their counts, and its files with what each defines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from agent.evidence.definitions import list_outline
from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest
from agent.text.escaping import format_count
from indexer.types import FileEntry, Location

MAX_DESCRIBED = 400  # files whose definitions are looked up; beyond that they are named only
_NAMES = 4
_FEW_FILES = 6  # below a folder, which are named with it


async def fetch_folder(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the folders and files that lie directly in the folder of the request."""
    folder = request["path"]
    inside = [entry for entry in await code.files() if entry.path.startswith(f"{folder}/")]
    own = [entry for entry in inside if "/" not in entry.path[len(folder) + 1 :]]
    refs = [*describe_folders(folder, inside), *[await _describe_file(code, entry, len(own)) for entry in own]]
    return Retrieved(refs=refs, totals={"files": len(inside), "folders": len(refs) - len(own)})


def describe_folders(folder: str, inside: Sequence[FileEntry]) -> list[EvidenceRef]:
    """Name the folders directly below a folder, or below the top where it is empty, with how many files each holds."""
    depth = len(folder) + 1 if folder else 0
    below = [entry for entry in inside if "/" in entry.path[depth:]]
    names = [entry.path[depth:].partition("/")[0] for entry in below]
    counts = Counter(names)
    first = dict(reversed([(name, entry) for name, entry in zip(names, below, strict=True)]))
    refs: list[EvidenceRef] = []
    for name, count in sorted(counts.items()):
        is_small = count <= _FEW_FILES and len(counts) <= _FEW_FILES
        files = [
            entry.path[depth:].removeprefix(f"{name}/") for entry in below if entry.path.startswith(f"{name}/", depth)
        ]
        refs.append(
            make_lines_ref(
                _locate_first_line(first[name]),
                "entry",
                language=first[name].language,
                symbol=f"{name}/",
                kind="folder",
                doc=format_count(count, "file"),
                signature=", ".join(files) if is_small else "",
            )
        )
    return refs


async def _describe_file(code: CodeSearch, entry: FileEntry, count: int) -> EvidenceRef:
    outline = await list_outline(code, entry.path) if count <= MAX_DESCRIBED else []
    told = [one.symbol for one in outline if one.symbol.kind != "module"] or [one.symbol for one in outline]
    names = [symbol.name for symbol in told]
    public = [name for name in names if not name.startswith("_")] or names
    more = f" and {len(public) - _NAMES} more" if len(public) > _NAMES else ""
    return make_lines_ref(
        _locate_first_line(entry),
        "entry",
        language=entry.language,
        symbol=PurePosixPath(entry.path).name,
        kind="file",
        signature=f"{', '.join(public[:_NAMES])}{more}",
        doc=format_count(entry.lines, "line"),
    )


def _locate_first_line(entry: FileEntry) -> Location:
    return Location(path=entry.path, start_line=1, end_line=1)
