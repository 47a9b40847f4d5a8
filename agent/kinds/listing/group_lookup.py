"""Fetches what belongs to a group: the subclasses and implementations of a type, or all that is called so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from agent.evidence.refs import make_lines_ref
from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.narrowing import MAX_ENTRIES, gather_entries, is_aside, make_member_ref
from agent.ports import CodeSearch
from agent.questions.terms import split_words, stem_word
from agent.state import EvidenceRef, RetrievalRequest
from indexer.types import FileEntry, Location

_FILLING = frozenset(
    "all the of a which different available existing supported built in various our your known".split()
)
_LEAST = 2  # that make a list
_KEPT = 6  # letters of a word that stand in a name or a path
_GENERIC_STEMS = frozenset({"__init__", "index", "mod", "main", "lib"})


async def fetch_list(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the subclasses of the type that a question names, or what is called by its noun."""
    parts = request.get("parts", {})
    if "base" in parts:
        return await _fetch_subclasses(code, parts["base"])
    if "prefix" in parts or "suffix" in parts:
        return await _fetch_named(code, parts.get("prefix", ""), parts.get("suffix", ""))
    words = [word for word in split_words(parts.get("target", "")) if word not in _FILLING]
    if not words or len(words) > 3:
        return Retrieved(refs=())
    types = await _find_types(code, words)
    if len(types.refs) >= _LEAST and not all(map(is_aside, types.refs)):
        return types
    files = _find_files(await code.files(), words)
    if len(files) >= _LEAST:
        return await gather_entries(code, files, whole=len(files))
    return types if len(types.refs) >= _LEAST else Retrieved(refs=())


async def _fetch_named(code: CodeSearch, prefix: str, suffix: str) -> Retrieved:
    """List what has a name that begins so, or the types whose names end so."""
    if suffix:
        found = [one for one in await code.types_named(suffix.lower()) if one.symbol.name.endswith(suffix)]
    else:
        names = await code.complete_name(prefix, limit=MAX_ENTRIES)
        found = [one for name in names for one in (await code.definitions(name))[:1]]
    refs = [make_member_ref(one) for one in found if one.symbol.name.startswith(prefix)]
    return await gather_entries(code, refs, whole=len(refs))


async def _find_types(code: CodeSearch, words: Sequence[str]) -> Retrieved:
    """Find the types that are called by the noun, the words before it in their names or paths."""
    ending = _cut_plural(words[-1])
    refs = [make_member_ref(one) for one in await code.types_named(ending) if one.symbol.name.lower() != ending]
    before = [word[:_KEPT] for word in words[:-1]]
    refs = [ref for ref in refs if all(word in f"{ref['path']} {ref['symbol']}".lower() for word in before)]
    return await gather_entries(code, refs, whole=len(refs))


async def _fetch_subclasses(code: CodeSearch, base: str) -> Retrieved:
    found = await code.subclasses(base)
    refs: list[EvidenceRef] = []
    for one in found:
        ref = make_member_ref(one.definition)
        ref["signature"] = "" if one.is_direct else one.base
        refs.append(ref)
    gathered = await gather_entries(code, refs, whole=len(refs))
    direct = sum(not ref["signature"] for ref in gathered.refs[: gathered.totals["entries"]])
    return Retrieved(refs=gathered.refs, totals={**gathered.totals, "direct": direct, "subclasses": 1})


def _cut_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word.removesuffix("s") if not word.endswith("ss") else word


def _find_files(files: Sequence[FileEntry], words: Sequence[str]) -> list[EvidenceRef]:
    """Return the files that lie in a folder of the name, such as all migrations."""
    wanted = [stem_word(word) for word in words]
    refs: list[EvidenceRef] = []
    for entry in files:
        path = PurePosixPath(entry.path)
        folder = [stem_word(word) for word in split_words(path.parent.name)]
        if folder[-len(wanted) :] == wanted and path.stem not in _GENERIC_STEMS and len(refs) < MAX_ENTRIES:
            ref = make_lines_ref(Location(path=entry.path, start_line=1, end_line=1), "entry", language=entry.language)
            ref["symbol"], ref["kind"] = path.name, "file"
            refs.append(ref)
    return refs
