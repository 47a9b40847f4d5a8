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
_BARE_KINDS = frozenset(
    {"flag", "environment", "setting", "command", "event", "model", "member", "file", "name", "row"}
)
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
    if len(entries) - material.skip <= most + _FEW_MORE:
        most += _FEW_MORE
    rows = _make_rows(entries[material.skip :], most)[:most]
    shown = [ref for row in rows for ref in row]
    if is_grouped and len(rows) == len(shown):
        for path, group in _group_by_file(shown):
            draft.say("\n".join([f"In {format_code_span(path)}:", "", *(write(draft, ref) for ref in group)]))
    elif rows:
        draft.say("\n".join(f"- {', '.join(write(draft, ref).removeprefix('- ') for ref in row)}" for row in rows))
    done = material.skip + len(shown)
    left = max(total, len(entries)) - done
    if done >= len(entries):
        if left > 0:
            draft.say(f"And {left:,} more, which are not listed here.")
        return None
    draft.say(f'And {left:,} more; say "more" to see them.')
    return {"question": material.name, "skip": done}


def _make_rows(entries: Sequence[EvidenceRef], most: int) -> list[list[EvidenceRef]]:
    """Put each entry on a row of its own; where that takes too many, neighbours of which nothing is said share one."""
    rows: list[list[EvidenceRef]] = []
    for ref in entries:
        is_bare = len(entries) > most and _says_nothing(ref)
        if rows and is_bare and len(rows[-1]) < _IN_ROW and _says_nothing(rows[-1][-1]):
            rows[-1].append(ref)
        else:
            rows.append([ref])
    return rows


def _says_nothing(ref: EvidenceRef) -> bool:
    is_bare = ref["kind"] in _BARE_KINDS and not ref["doc"]
    return ref["kind"] == "folder" or (is_bare and (not ref["signature"] or ref["kind"] == "event"))


def format_plain_entry(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one entry as a list item: its name, its mark, what it is for."""
    about = quote_first_sentence(ref, longest=120)
    return f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}" + (f": {about}" if about else "")


def _group_by_file(entries: Iterable[EvidenceRef]) -> list[tuple[str, list[EvidenceRef]]]:
    groups: dict[str, list[EvidenceRef]] = {}
    for ref in entries:
        groups.setdefault(ref["path"] or ref["kind"], []).append(ref)
    return list(groups.items())
