"""Many searches in one run: a query a line in, its hits a line out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent.ports import CodeSearch
from bot import records
from bot.lookups import Outcome, Query


@dataclass(frozen=True, kw_only=True)
class BatchLine:
    """One query and the name its hits are to carry."""

    id: str | int
    query: str


class BadLine(ValueError):
    """A line is not a query; the text says why."""


def parse(line: str) -> BatchLine:
    """Read `{"id": ..., "query": "..."}`; other keys are ignored."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not JSON ({error})") from error
    if not isinstance(record, dict):
        raise BadLine('not an object like {"id": "1", "query": "..."}')
    query, name = record.get("query"), record.get("id")
    if not isinstance(query, str) or not query.strip():
        raise BadLine('"query" must be a text that is not empty')
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise BadLine('"id" must be a text or a whole number')
    return BatchLine(id=name, query=query)


async def run(
    code: CodeSearch,
    lines: Iterable[bytes],
    query: Query,
    *,
    write: Callable[[str], None],
    complain: Callable[[str], None],
) -> Outcome:
    """Answer every line that can be read, in order; the outcome is a failure if there was another."""
    bad = 0
    for number, raw in enumerate(lines, start=1):
        try:
            line = parse(raw.decode()) if raw.strip() else None
        except ValueError as error:  # BadLine, and bytes that are not UTF-8
            bad += 1
            complain(f"line {number}: {error}")
            continue
        if line is not None:
            hits = await code.search(line.query, limit=query.limit, filters=query.filters, mode=query.mode)
            write(records.to_json({"id": line.id, "hits": [records.hit_record(hit) for hit in hits]}))
    return Outcome(ok=not bad, note=f"{bad} line{'s' * (bad != 1)} could not be read." if bad else "")
