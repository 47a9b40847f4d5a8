"""Gathers what a newcomer wants to see of a repository: README, folders, where it starts, what most depends on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.retrieved import Retrieved
from agent.kinds.explanations import find_titles
from agent.kinds.outlines import describe_folders
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest
from indexer.types import FileEntry, Location

MAX_FOLDERS = 10
_HUBS = 5
_CENTRAL = 60  # definitions, of which a few lie in one file
_MAIN_SHARE = 0.6  # of all code, which a folder holds that is the core
_CORE_FILES = 6
_DESIGN = re.compile(
    r"(?:.*[-_])?(?:architecture|design|internals)(?:[-_]overview)?\.(?:md|markdown|rst|txt|adoc)", re.IGNORECASE
)
_DESIGN_LINES = 400
_HEADINGS = 12


async def fetch_overview(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Refer to the README's introduction, the folders at the top, the files that start it, and those most used.

    Nothing where the question names something else than the repository.
    """
    if request.get("parts", {}).get("name", code.repository).lower() != code.repository.lower():
        return Retrieved(refs=())
    entries = await code.files()
    facts = await code.overview()
    introduction = [make_lines_ref(one.location, "explanation", language=one.language) for one in facts.introduction]
    folders = describe_folders("", entries)
    central = dict.fromkeys(definition.path for definition in await code.list_central(limit=_CENTRAL))
    sources = {entry.path for entry in entries if entry.source_type == "code" and "." in PurePosixPath(entry.path).name}
    used = [path for path in central if path in sources]
    hubs = [_refer(path, "hub") for path in [path for path in used if not is_test_or_docs(path)] or used]
    refs = [
        *introduction,
        *await _find_design(code, entries),
        *sorted(folders, key=lambda ref: -_read_count(ref))[:MAX_FOLDERS],
        *_describe_core(entries),
        *(_refer(path, "start") for path in facts.starts),
        *hubs[:_HUBS],
    ]
    refs = refs or [_refer(entry.path, "start") for entry in entries[:1]]
    return Retrieved(refs=refs, totals={"files": len(entries), "folders": len(folders)})


async def _find_design(code: CodeSearch, entries: Sequence[FileEntry]) -> list[EvidenceRef]:
    """Refer to the document that tells how it is built, the one nearest to the top, with its headings."""
    named = [entry for entry in entries if _DESIGN.fullmatch(PurePosixPath(entry.path).name)]
    for entry in sorted(named, key=lambda entry: (entry.path.count("/"), entry.path))[:1]:
        passage = await code.read(entry.path, 1, _DESIGN_LINES)
        titles = [title.strip("# ") for _, title in sorted(find_titles(passage.text.split("\n")))]
        if len(titles) > 1:
            ref = make_lines_ref(passage.location, "entry", language=entry.language)
            ref["symbol"], ref["kind"] = entry.path, "design"
            ref["doc"] = ", ".join(titles[1 : _HEADINGS + 1])
            return [ref]
    return []


def _describe_core(entries: Sequence[FileEntry]) -> list[EvidenceRef]:
    """Refer to the folders and files directly in the folder that holds most of the code, where it is no top folder."""
    sources = [entry for entry in entries if entry.source_type == "code"]
    core = ""
    while inner := _find_main_folder(sources, core):
        core = inner
    inside = [entry for entry in sources if core and entry.path.startswith(f"{core}/")]
    own = [entry for entry in inside if "/" not in entry.path[len(core) + 1 :]]
    largest = sorted(own, key=lambda entry: -entry.lines)[:_CORE_FILES]
    refs = sorted(describe_folders(core, inside), key=lambda ref: -_read_count(ref))[:MAX_FOLDERS] if core else []
    for ref in refs:
        ref["kind"] = "part"
    return [*refs, *(_refer(entry.path, "part", last=entry.lines) for entry in largest)]


def _find_main_folder(sources: Sequence[FileEntry], folder: str) -> str:
    """Find the folder directly in another one that holds most of all code; empty where none does."""
    start = f"{folder}/" if folder else ""
    names = Counter(
        entry.path[len(start) :].partition("/")[0]
        for entry in sources
        if entry.path.startswith(start) and "/" in entry.path[len(start) :]
    )
    name, count = max(names.items(), key=lambda each: each[1], default=("", 0))
    return f"{start}{name}" if name and count >= _MAIN_SHARE * len(sources) else ""


def _read_count(ref: EvidenceRef) -> int:
    return int(re.sub(r"\D", "", ref["doc"]) or 0)


def _refer(path: str, kind: str, *, last: int = 1) -> EvidenceRef:
    ref = make_lines_ref(Location(path=path, start_line=1, end_line=max(1, last)), "entry")
    ref["symbol"], ref["kind"] = path, kind
    return ref
