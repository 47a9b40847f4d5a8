"""Fetches what belongs to a group: the subclasses and implementations of a type, or all that is called so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.described_functions import find_described
from agent.kinds.listing.file_groups import (
    find_files,
    find_files_of_form,
    find_parts,
    find_subprojects,
    find_translations,
    is_about_translations,
)
from agent.kinds.listing.narrowing import MAX_ENTRIES, gather_entries, is_aside, make_member_ref
from agent.kinds.listing.table_lookup import find_prefixed, find_rows, find_tables
from agent.kinds.listing.type_members import find_implementers, find_members_of_named, find_type
from agent.ports import CodeSearch
from agent.questions.terms import split_words
from agent.state import EvidenceRef, RetrievalRequest
from indexer.text.linear_patterns import compile_pattern

_FILLING = frozenset(
    "all the of a which different available existing supported built in various our your known".split()
)
_LEAST = 2  # that make a list
_NAMED, _IN_ONE_FOLDER = 4, 2  # what one counts, of what is named so and of what lies so, beside a scattered file
_LINKS = compile_pattern(r"(?i)\s(?:for|in|of|to|from|on|with|under)\s")
# Said of what is in a list, and no part of what it is called.
_SORTS = frozenset(
    "apps applications programs projects classes types modules packages functions structs constants scripts components"
    " names objects enums interfaces".split()
)
_MOST_WORDS = 4
_KEPT = 6  # letters of a word that stand in a name or a path


async def fetch_list(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the subclasses of the type that a question names, or what is called by its noun."""
    parts = request.get("parts", {})
    if "base" in parts:
        return await _fetch_subclasses(code, parts["base"])
    if "prefix" in parts or "suffix" in parts:
        return await _fetch_named(code, parts)
    target = parts.get("target", "")
    if is_about_translations(target) and (translations := find_translations(await code.files())):
        return await gather_entries(code, translations, whole=len(translations))
    named, *_ = _LINKS.split(target)
    words = [word for word in split_words(named) if word not in _FILLING]
    if not words or len(words) > _MOST_WORDS:
        return Retrieved(refs=())
    if "with" in parts:
        rows = await find_rows(code, words, parts["with"].strip("`"))
        return await gather_entries(code, rows, whole=len(rows)) if len(rows) >= _LEAST else Retrieved(refs=())
    found = await _fetch_group(code, words, is_chosen="state" in parts)
    if not found.refs and len(words) > 1 and words[-1] in _SORTS:
        found = await _fetch_group(code, words[:-1], is_chosen="state" in parts)
        base = await find_type(code, "".join(words[:-1]), exactly=False)
        below = await _fetch_subclasses(code, base.symbol.name) if base is not None else found
        found = below if len(below.refs) > len(found.refs) else found
    return found


def name_group(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a question for options or entry points as those of one for a list."""
    if "prefix" in parts:
        return {"prefix": parts["prefix"].strip("`*")}
    noun, target = parts.get("noun", ""), parts.get("target", "")
    return {"target": noun if not target or len(noun.split()) > 1 else f"{target} {noun}"}


async def _fetch_group(code: CodeSearch, words: Sequence[str], *, is_chosen: bool) -> Retrieved:
    """List what is called so: types, files of a folder, members of tables; of what is `chosen`, a table says it."""
    if is_chosen and (tables := await _fetch_tables(code, words)).refs:
        return tables
    entries = await code.files()
    parts = [] if is_chosen else find_subprojects(entries, words) or find_parts(entries, words)
    if parts and not all(map(is_aside, parts)):
        return await gather_entries(code, parts, whole=len(parts))
    types = await _find_types(code, words)
    owner, held = await find_members_of_named(code, [*words[:-1], _cut_plural(words[-1])])
    files = [] if is_chosen else find_files_of_form(entries, words) or find_files(entries, words)
    most = max((list(types.refs), held, files), key=_weigh_group)
    if len(most) >= _LEAST and not all(map(is_aside, most)):
        gathered = await gather_entries(code, most, whole=len(most))
        facts = {"tables": owner} if most == held else {}
        return Retrieved(refs=gathered.refs, totals=gathered.totals, facts=facts)
    for found in (await _fetch_tables(code, words), types, await gather_entries(code, parts or files, whole=0)):
        if len(found.refs) >= _LEAST:
            return found
    described = await find_described(code, [*words[:-1], _cut_plural(words[-1])])
    return await gather_entries(code, described if len(described) >= _LEAST else [], whole=len(described))


def _weigh_group(refs: Sequence[EvidenceRef]) -> tuple[bool, int]:
    """Weigh the members of a group: names of the code count more than files, those of one folder more than others."""
    main = [ref for ref in refs if not is_aside(ref)]
    is_of_files = bool(main) and main[0]["kind"] == "file"
    is_one_folder = len({ref["path"].rpartition("/")[0] for ref in main}) == 1
    return len(main) >= _LEAST, (_NAMED if not is_of_files else _IN_ONE_FOLDER if is_one_folder else 1) * len(main)


async def _fetch_tables(code: CodeSearch, words: Sequence[str]) -> Retrieved:
    tables = await find_tables(code, [*words[:-1], _cut_plural(words[-1])])
    refs = [ref for table in tables for ref in table.refs]
    gathered = await gather_entries(code, refs, whole=len(refs))
    names = ", ".join(dict.fromkeys(table.name for table in tables))
    return Retrieved(refs=gathered.refs, totals=gathered.totals, facts={"tables": names} if names else {})


async def _fetch_named(code: CodeSearch, parts: Mapping[str, str]) -> Retrieved:
    """List what has a name that begins so, or the types whose names end so, in the folder that is named."""
    prefix, suffix, where = parts.get("prefix", ""), parts.get("suffix", ""), parts.get("where", "").strip("/").lower()
    if suffix:
        found = [one for one in await code.types_named(suffix.lower()) if one.symbol.name.endswith(suffix)]
    else:
        names = await code.complete_name(prefix, limit=MAX_ENTRIES)
        found = [one for name in names for one in (await code.definitions(name))[:1]]
    refs = [make_member_ref(one) for one in found if one.symbol.name.startswith(prefix)]
    if prefix and len(refs) < _LEAST:  # what is a key of a table has no definition of its own
        refs = await find_prefixed(code, prefix)
    within = [ref for ref in refs if where and f"/{where}/" in f"/{ref['path'].lower()}"]
    return await gather_entries(code, within or refs, whole=len(refs))


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
    if not found:
        refs = [make_member_ref(one) for one in await find_implementers(code, base.strip("`"))]
        for ref in refs:
            ref["signature"] = ""
    for one in found:
        ref = make_member_ref(one.definition)
        ref["signature"] = "" if one.is_direct else one.base
        refs.append(ref)
    gathered = await gather_entries(code, refs, whole=len(refs))
    direct = sum(not ref["signature"] for ref in gathered.refs[: gathered.totals["entries"]])
    totals = {**gathered.totals, "direct": direct, "subclasses": 1}
    return Retrieved(refs=gathered.refs, totals=totals, facts={"base": base})


def _cut_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word.removesuffix("s") if not word.endswith("ss") else word
