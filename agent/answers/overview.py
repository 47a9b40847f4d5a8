"""The overview of a repository on one screen: what it is, its parts, where it starts, what most depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from agent.answers.answer_parts import TYPE_KINDS, strip_doc_markup
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.evidence.definitions import list_members
from agent.evidence.refs import read_quote
from agent.state import EvidenceRef, to_location
from agent.text.escaping import format_code_span, format_quote

_LANGUAGES = 3
_NAMES = 3
_LONGEST_PARAGRAPH = 500
_LONGEST_HEADINGS = 300


async def write_overview(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the introduction of the README, then the parts, the starting points and the hubs, a line each."""
    draft.say(await _describe_repository(material))
    for ref in material.of("explanation"):
        text = " ".join((await read_quote(material.deps, to_location(ref))).lines)
        paragraph = format_quote(strip_doc_markup(text), longest=_LONGEST_PARAGRAPH)
        draft.say(f"{paragraph} {draft.cite(to_location(ref))}")
    entries = material.of("entry")
    for ref in (ref for ref in entries if ref["kind"] == "design"):
        headings = format_quote(strip_doc_markup(ref["doc"]), longest=_LONGEST_HEADINGS)
        draft.say(f"{format_code_span(ref['path'])} {draft.cite(to_location(ref))} tells how it is built: {headings}")
    folders = [ref for ref in entries if ref["kind"] == "folder"]
    if folders:
        items = [f"- {format_code_span(ref['symbol'])}: {ref['doc']}" for ref in folders]
        left = material.metadata["totals"].get("folders", 0) - len(folders)
        draft.say("\n".join([*items, *([f"- and {left} more folders"] if left > 0 else [])]))
    if parts := [ref for ref in entries if ref["kind"] == "part"]:
        named = [_format_part(ref) for ref in parts]
        draft.say(f"Most of the code is in {format_code_span(_find_parent(parts))}: {', '.join(named)}.")
    await _write_files(draft, material, "It starts in", [ref for ref in entries if ref["kind"] == "start"])
    await _write_files(draft, material, "Most of the code uses", [ref for ref in entries if ref["kind"] == "hub"])
    return AnswerSubject()


def _format_part(ref: EvidenceRef) -> str:
    name = ref["symbol"] if ref["doc"] else PurePosixPath(ref["symbol"]).name
    count = f" ({ref['doc'].split()[0]})" if ref["doc"] else ""
    return f"{format_code_span(name)}{count}"


def _find_parent(parts: Sequence[EvidenceRef]) -> str:
    """Find the folder that the parts lie in: of a part that is a folder, its own name stands before the rest."""
    first = parts[0]
    if not first["doc"]:
        return f"{PurePosixPath(first['path']).parent}/"
    return first["path"].partition(f"/{first['symbol']}")[0] + "/"


async def _describe_repository(material: AnswerContext) -> str:
    files = await material.deps.code.files()
    counts = Counter(entry.language for entry in files if entry.source_type in {"code", "test"} and entry.language)
    lines = sum(entry.lines for entry in files)
    languages = [f"{language} ({count:,})" for language, count in counts.most_common(_LANGUAGES)]
    mostly = f", mostly {', '.join(languages)}" if languages else ""
    name = format_code_span(material.deps.code.repository)
    return f"{name} has {len(files):,} file{'s' * (len(files) != 1)} with {lines:,} lines{mostly}."


async def _write_files(draft: AnswerBuilder, material: AnswerContext, title: str, refs: Sequence[EvidenceRef]) -> None:
    """Name files with a few of the names that each defines."""
    items: list[str] = []
    said: set[str] = set()  # a module that many files reopen tells nothing of any
    for ref in refs:
        inside = await list_members(material.deps.code, ref["path"])
        public = [one.symbol for one in inside if not one.symbol.name.startswith("_") and one.symbol.kind != "constant"]
        ordered = [one.name for one in sorted(public, key=lambda one: one.kind not in TYPE_KINDS)]
        names = [name for name in dict.fromkeys(ordered) if name not in said][:_NAMES]
        said.update(names)
        about = f": {', '.join(map(format_code_span, names))}" if names else ""
        items.append(f"- {format_code_span(ref['path'])} {draft.cite(to_location(ref))}{about}")
    if items:
        draft.say("\n".join([f"{title}:", "", *items]))
