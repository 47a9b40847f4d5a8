"""Many searches in one run: a query a line in, its hits a line out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent.ports import CodeSearch
from bot import records
from bot.lookups import CommandOutcome, SearchQuery


@dataclass(frozen=True, kw_only=True)
class BatchQuery:
    """One query and the name its hits are to carry."""

    id: str | int
    query: str


class InvalidBatchLine(ValueError):
    """A line is not a query; the text says why."""


def parse_batch_line(line: str) -> BatchQuery:
    """Read `{"id": ..., "query": "..."}`; other keys are ignored."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidBatchLine(f"not JSON ({error})") from error
    if not isinstance(record, dict):
        raise InvalidBatchLine('not an object like {"id": "1", "query": "..."}')
    query, name = record.get("query"), record.get("id")
    if not isinstance(query, str) or not query.strip():
        raise InvalidBatchLine('"query" must be a text that is not empty')
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InvalidBatchLine('"id" must be a text or a whole number')
    return BatchQuery(id=name, query=query)


async def run_batch(
    code: CodeSearch,
    lines: Iterable[bytes],
    query: SearchQuery,
    *,
    write: Callable[[str], None],
    complain: Callable[[str], None],
) -> CommandOutcome:
    """Answer every line that can be read, in order; the outcome is a failure if there was another."""
    bad = 0
    for number, raw in enumerate(lines, start=1):
        try:
            line = parse_batch_line(raw.decode()) if raw.strip() else None
        except ValueError as error:  # BadLine, and bytes that are not UTF-8
            bad += 1
            complain(f"line {number}: {error}")
            continue
        if line is not None:
            hits = await code.search(line.query, limit=query.limit, filters=query.filters, mode=query.mode)
            write(records.to_json({"id": line.id, "hits": [records.hit_to_record(hit) for hit in hits]}))
    return CommandOutcome(ok=not bad, note=f"{bad} line{'s' * (bad != 1)} could not be read." if bad else "")
