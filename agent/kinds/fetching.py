"""Carries out retrieval requests: each lookup has a function that fetches its evidence."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from agent.evidence.contracts import fetch_contract
from agent.evidence.definitions import list_outline
from agent.evidence.lookups import LOOKUPS, search
from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Fetch, Retrieved
from agent.history.changes import fetch_changes
from agent.history.people import fetch_people
from agent.kinds.command_search import fetch_commands
from agent.kinds.registrations import fetch_registered, fetch_subclasses
from agent.ports import CodeSearch
from agent.state import EvidenceRef, Lookup, RetrievalRequest
from agent.text.escaping import format_count
from indexer.errors import IndexerError
from indexer.types import FileEntry, Location

MAX_DESCRIBED = 400  # files whose definitions are looked up; beyond that they are named only
_NAMES = 4
_FEW_FILES = 6  # below a folder, which are named with it


async def fetch_folder(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the direct contents of the requested folder."""
    folder = request["path"]
    inside = [entry for entry in await code.files() if entry.path.startswith(f"{folder}/")]
    own = [entry for entry in inside if "/" not in entry.path[len(folder) + 1 :]]
    refs = [*describe_folders(folder, inside), *[await _describe_file(code, entry, len(own)) for entry in own]]
    return Retrieved(refs=refs, totals={"files": len(inside), "folders": len(refs) - len(own)})


def describe_folders(folder: str, inside: Sequence[FileEntry]) -> list[EvidenceRef]:
    """Name the folders directly below a folder (empty: the top), each with its number of files."""
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


log = logging.getLogger(__name__)


async def _fetch_overview(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Fetch the README's description of the repository, or the results of a search."""
    told = [
        make_lines_ref(one.location, "lines", language=one.language) for one in (await code.overview()).introduction
    ]
    return Retrieved(refs=told) if told else await search(code, request)


# Kinds of question with an answer of their own; of a kind that is missing here, a search is made.
_KINDS: Mapping[Lookup, Fetch] = {
    "changes": fetch_changes,
    "people": fetch_people,
    "commands": fetch_commands,
    "options": fetch_registered,
    "entry_points": fetch_registered,
    "contracts": fetch_contract,
    "lists": fetch_subclasses,
    "outline": fetch_folder,
    "overview": _fetch_overview,
}


async def fetch_evidence(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Carry out one retrieval request; fall back to a search if its kind has nothing here."""
    fetch = LOOKUPS.get(request["lookup"]) or _KINDS.get(request["lookup"])
    found = await fetch(code, request) if fetch is not None else Retrieved(refs=())
    is_beside = "words" in request.get("parts", {})  # asked of git beside a search
    if found.refs or is_beside or request["lookup"] in LOOKUPS:
        return found
    return await search(code, request)


async def try_fetch(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Carry out one request without ending the others; return the reason of a failure."""
    try:
        return await fetch_evidence(code, request)
    except IndexerError as error:
        log.warning("the %s request failed: %s", request["lookup"], error)
        return Retrieved(refs=(), failures=(str(error),))
