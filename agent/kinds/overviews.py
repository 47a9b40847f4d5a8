"""Gathers what a newcomer wants to see of a repository: README, folders, where it starts, what most depends on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePosixPath

from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.retrieved import Retrieved
from agent.kinds.explanations import find_titles
from agent.kinds.outlines import describe_folders
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest
from indexer.types import FileEntry, Location

MAX_FOLDERS = 10
_ENTRY_POINTS = 5
_HUBS = 5
_CENTRAL = 60  # definitions, of which a few lie in one file
_README_LINES = 120
_README = re.compile(r"readme(?:\.(?:md|markdown|rst|txt|adoc|org))?", re.IGNORECASE)
_STARTS = re.compile(
    r"(?:__main__|main|manage|app|server|wsgi|asgi|cli)\.py|main\.(?:go|rs|c|cc|cpp|java|kt|swift|dart|ts|js|tsx|jsx|zig)"
    r"|(?:index|server|app|cli)\.(?:js|ts|mjs|cjs|tsx)|lib\.rs|Program\.cs|\w*Application\.(?:java|kt)|config\.ru|index\.php"
)
# Lines of a README that introduce nothing: badges, images, links, markup, rules, headings.
_NO_PROSE = re.compile(r"\s*(?:[#=*~^\-<|!\[.{:>]|```|\w+://)|\s*$")
_MARKUP = re.compile(r"<[^<>]{0,200}>|[*_`]")
_BEING = frozenset({("is", "a"), ("is", "an"), ("is", "the"), ("is", "our")})
_LONGEST = 2_000  # characters of a paragraph that are looked at
_NAMED_WITHIN, _SAID_WITHIN = 12, 10  # words
_MAIN_SHARE = 0.6  # of all code, which a folder holds that is the core
_CORE_FILES = 6
_SHORTEST = 60  # characters of a paragraph that needs no other beside it
_FEWEST_WORDS = 3
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
    introduction = await _find_introduction(code, entries)
    folders = describe_folders("", entries)
    starts = _find_starts(entries)
    central = dict.fromkeys(definition.path for definition in await code.list_central(limit=_CENTRAL))
    sources = {entry.path for entry in entries if entry.source_type == "code" and "." in PurePosixPath(entry.path).name}
    used = [path for path in central if path in sources]
    hubs = [_refer(path, "hub") for path in [path for path in used if not is_test_or_docs(path)] or used]
    refs = [
        *introduction,
        *await _find_design(code, entries),
        *sorted(folders, key=lambda ref: -_read_count(ref))[:MAX_FOLDERS],
        *_describe_core(entries),
        *(_refer(entry.path, "start") for entry in starts),
        *hubs[:_HUBS],
    ]
    refs = refs or [_refer(entry.path, "start") for entry in entries[:1]]
    return Retrieved(refs=refs, totals={"files": len(entries), "folders": len(folders)})


async def _find_introduction(code: CodeSearch, entries: Sequence[FileEntry]) -> list[EvidenceRef]:
    """Find the first paragraph of the README at the top that is prose; after a slogan, the next one too."""
    at_top = [entry for entry in entries if "/" not in entry.path and _README.fullmatch(entry.path)]
    nested = [entry for entry in entries if _README.fullmatch(PurePosixPath(entry.path).name)]
    readme = next(iter([*at_top, *sorted(nested, key=lambda entry: entry.path.count("/"))]), None)
    if readme is None:
        return []
    lines = (await code.read(readme.path, 1, _README_LINES)).text.split("\n")
    paragraphs = _list_paragraphs(lines)
    says_what_it_is = [
        (start, end) for start, end in paragraphs if _is_introduction(" ".join(lines[start:end]), code.repository)
    ]
    prose = [(start, end) for start, end in paragraphs if _is_prose(lines[start:end])]
    at_start = prose[:1] if prose and len(" ".join(lines[slice(*prose[0])])) >= _SHORTEST else prose[:2]
    return [
        make_lines_ref(
            Location(path=readme.path, start_line=start + 1, end_line=end), "explanation", language=readme.language
        )
        for start, end in says_what_it_is[:1] or at_start
    ]


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether a paragraph says something: a slogan of a few words does, a badge or a heading does not."""
    words = list(dropwhile(_is_emoji, " ".join(lines).split()))
    return len(words) >= _FEWEST_WORDS and not _NO_PROSE.match(words[0])


def _is_emoji(word: str) -> bool:
    return len(word) > 2 and word[0] == word[-1] == ":"


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


def _list_paragraphs(lines: Sequence[str]) -> list[tuple[int, int]]:
    """List where paragraphs begin and end: runs of lines that are not blank."""
    blank = [-1, *(at for at, line in enumerate(lines) if not line.strip()), len(lines)]
    return [(before + 1, after) for before, after in pairwise(blank) if after > before + 1]


def _is_introduction(text: str, name: str) -> bool:
    """Whether a paragraph says what something is: "NAME is a ..."."""
    words = _MARKUP.sub(" ", text[:_LONGEST]).lower().split()
    called = [at for at, word in enumerate(words[:_NAMED_WITHIN]) if word.strip("(),:") == name.lower()]
    return any(pair in _BEING for at in called for pair in pairwise(words[at : at + _SAID_WITHIN]))


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


def _find_starts(entries: Sequence[FileEntry]) -> list[FileEntry]:
    named = [
        entry for entry in entries if entry.source_type == "code" and _STARTS.fullmatch(PurePosixPath(entry.path).name)
    ]
    # In a repository that is an example as a whole, every path may say so.
    found = [entry for entry in named if not is_test_or_docs(entry.path)] or named
    return sorted(found, key=lambda entry: (entry.path.count("/"), entry.path))[:_ENTRY_POINTS]


def _refer(path: str, kind: str, *, last: int = 1) -> EvidenceRef:
    ref = make_lines_ref(Location(path=path, start_line=1, end_line=max(1, last)), "entry")
    ref["symbol"], ref["kind"] = path, kind
    return ref
