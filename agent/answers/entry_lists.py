"""Answers that are complete lists: a sentence that counts, the entries there is room for, and how many are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agent.answers.answer_parts import quote_first_sentence
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext
from agent.state import Continuation, EvidenceRef, to_location
from agent.text.escaping import format_code_span

MAX_ENTRIES = 20
_FEW_MORE = 4  # entries that take no more room than saying that they are left out
_IN_ROW = 4  # entries of which nothing is said but their name
_BARE_KINDS = frozenset({"flag", "environment", "setting", "command", "event", "model", "member", "file"})
FormatEntry = Callable[[AnswerBuilder, EvidenceRef], str]


def write_entries(
    draft: AnswerBuilder,
    material: AnswerContext,
    entries: Sequence[EvidenceRef],
    *,
    format_entry: FormatEntry | None = None,
    most: int = MAX_ENTRIES,
    is_grouped: bool = True,
    total: int = 0,
) -> Continuation | None:
    """List entries, by default under the files that they stand in or the folders that commits touched.

    A long list of mere names has several in a row. The list goes on where the last answer ended; `total` counts
    entries that were not fetched as well. Return what "more" means afterwards; None when the last entry was listed.
    """
    write = format_entry or format_plain_entry
    is_bare = len(entries) - material.skip > most + _FEW_MORE and all(_says_nothing(ref) for ref in entries)
    most *= _IN_ROW - 1 if is_bare else 1
    if len(entries) - material.skip <= most + _FEW_MORE:
        most += _FEW_MORE
    shown = entries[material.skip : material.skip + most]
    if is_bare:
        rows = [shown[at : at + _IN_ROW] for at in range(0, len(shown), _IN_ROW)]
        draft.say("\n".join(f"- {', '.join(write(draft, ref).removeprefix('- ') for ref in row)}" for row in rows))
    elif is_grouped:
        for path, group in _group_by_file(shown):
            draft.say("\n".join([f"In {format_code_span(path)}:", "", *(write(draft, ref) for ref in group)]))
    elif shown:
        draft.say("\n".join(write(draft, ref) for ref in shown))
    done = material.skip + len(shown)
    left = max(total, len(entries)) - done
    if done >= len(entries):
        if left > 0:
            draft.say(f"And {left:,} more, which are not listed here.")
        return None
    draft.say(f'And {left:,} more; say "more" to see them.')
    return {"question": material.name, "skip": done}


def _says_nothing(ref: EvidenceRef) -> bool:
    return ref["kind"] in _BARE_KINDS and not ref["doc"] and (not ref["signature"] or ref["kind"] == "event")


def format_plain_entry(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one entry as a list item: its name, its mark, what it is for."""
    about = quote_first_sentence(ref, longest=120)
    return f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}" + (f": {about}" if about else "")


def _group_by_file(entries: Iterable[EvidenceRef]) -> list[tuple[str, list[EvidenceRef]]]:
    groups: dict[str, list[EvidenceRef]] = {}
    for ref in entries:
        groups.setdefault(ref["path"] or ref["kind"], []).append(ref)
    return list(groups.items())
