"""The one-shot lookups: `index`, `search` (one query or a batch), `symbols`, `callers` and `callees`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from bot.adapters.terminal import output
from bot.adapters.terminal.output import CodeLine, CommandOutcome
from bot.markdown import to_one_line
from bot.repositories.refresh import PATIENCE_SECONDS, ProgressDisplay, refresh_if_stale, refresh_index
from indexer import Filters, IndexerError, RefreshReport, SearchMode

if TYPE_CHECKING:
    from agent import CodeSearch, Denial
    from bot.adapters.terminal.display import Terminal
    from bot.app import App
    from bot.ports import RepositoryIndex


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """The options of a search."""

    limit: int = 10
    filters: Filters = field(default_factory=Filters)
    mode: SearchMode = "hybrid"


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The form of a result list: one JSON object, or lines as the terminal shows code."""

    terminal: Terminal
    as_json: bool = False

    def report_records(
        self, code: CodeSearch, key: str, records: Iterable[dict[str, Any]], no: Denial | None
    ) -> CommandOutcome:
        """List results as JSON below a key; for a "no", add the coverage."""
        rows: dict[str, Any] = {key: [*records]}
        if no is not None:
            from agent import describe_coverage

            rows["coverage"] = describe_coverage(code.commit.sha, no.coverage).model_dump(mode="json")
        return CommandOutcome(output=output.to_json(rows), note=no.text if no is not None else "", ok=no is None)

    def report_lines(self, lines: Sequence[CodeLine], no: Denial | None) -> CommandOutcome:
        """List results for people; a call with several possible definitions appears once for each."""
        text = self.terminal.format_code_lines([*dict.fromkeys(lines)])
        return CommandOutcome(output=text, note=no.text if no is not None else "", ok=no is None)


async def pin_current(index: RepositoryIndex, display: ProgressDisplay) -> CodeSearch:
    """Bring the index to HEAD and pin it."""
    await refresh_if_stale(index, display)
    return await index.pin()


async def pin_named(app: App, display: ProgressDisplay, at: str) -> CodeSearch:
    """Pin the repository at a branch, tag, commit or pull request; by default at its newest commit."""
    newest = await pin_current(app.index, display)
    if not at:
        return newest
    from bot.repositories.ref_chooser import RefChooser

    chooser = RefChooser(app.refs)
    ref = await chooser.find(newest.repository, at)
    if ref is None:
        return newest
    with display.show_indexing(patience=PATIENCE_SECONDS) as show:
        return await chooser.pin(newest.repository, ref, show)


async def index_all(
    opening: Sequence[Callable[[], AbstractAsyncContextManager[App]]],
    display: ProgressDisplay,
    *,
    full: bool,
    as_json: bool,
) -> CommandOutcome:
    """Index HEAD of each repository, and its kept branches.

    If one of several repositories cannot be indexed, the others still are.
    """
    reports: list[tuple[RefreshReport, str]] = []
    for open_app in opening:
        try:
            async with open_app() as app:
                report = await refresh_index(app.index, display, full=full)
                for refs in app.refs.values():
                    await refs.refresh_kept()
                reports.append((report, (await app.index.status()).repository))
        except IndexerError as error:
            if len(opening) == 1:
                raise
            display.note(str(error))
    ok = len(reports) == len(opening)
    if not as_json:
        return CommandOutcome(output="\n".join(output.format_refresh_report(*each) for each in reports), ok=ok)
    records = [output.report_to_record(*each) for each in reports]
    return CommandOutcome(output=output.to_json(records[0] if len(opening) == 1 else {"repositories": records}), ok=ok)


async def run_search(code: CodeSearch, text: str, query: SearchQuery, listing: Listing) -> CommandOutcome:
    """List the places that match a query, best first."""
    hits = await code.search(text, limit=query.limit, filters=query.filters, mode=query.mode)
    no = None if hits else await _explain_no_hits(code, query.filters)
    if listing.as_json:
        return listing.report_records(code, "hits", map(output.hit_to_record, hits), no)
    return listing.report_lines([output.describe_hit(hit, text) for hit in hits], no)


async def _explain_no_hits(code: CodeSearch, filters: Filters) -> Denial:
    from agent import deny

    no = await deny(code, "No match was found", quote=str)
    present = {file.language for file in await code.files()}
    unknown = [language for language in filters.languages if language not in present]
    if unknown and present:
        snapshot = _describe_snapshot(code)
        sentence = f"No file of {snapshot} is in {', '.join(unknown)}. There are: {', '.join(sorted(present))}."
        return replace(no, text=sentence)
    return replace(no, text=f"{no.text} Use other words, or fewer filters.")


async def list_left_out(code: CodeSearch, *, as_json: bool) -> CommandOutcome:
    """List the unindexed paths of the commit by reason."""
    left = sorted(await code.list_left_out(), key=lambda one: (one.reason, one.path))
    if as_json:
        return CommandOutcome(output=output.to_json({"left_out": [asdict(one) for one in left]}))
    rows = [to_one_line(f"{one.reason:<16}{one.path}") for one in left]
    note = "" if rows else f"Every file of {_describe_snapshot(code)} is indexed."
    return CommandOutcome(output="\n".join(rows), note=note)


async def list_definitions(code: CodeSearch, name: str, listing: Listing) -> CommandOutcome:
    """List the definitions of a name."""
    found, no = await code.definitions(name), None
    if not found:
        from agent import explain_undefined

        no = await explain_undefined(code, name)
    if listing.as_json:
        return listing.report_records(code, "symbols", map(output.definition_to_record, found), no)
    return listing.report_lines([*map(output.describe_definition, found)], no)


async def list_calls(
    code: CodeSearch, name: str, listing: Listing, which: Literal["callers", "callees"]
) -> CommandOutcome:
    """List the callers of a function or class, or its callees."""
    is_called = which == "callers"
    calls, no = await (code.callers(name) if is_called else code.callees(name)), None
    if not calls:
        from agent import describe_named_uses, explain_no_calls

        sentence = f"No call of {name} was found" if is_called else f"{name} calls no function known by name"
        no = await explain_no_calls(code, name, sentence)
        if is_called and (uses := await describe_named_uses(code, name)):
            no = replace(no, text=f"{no.text} {uses}")
    if listing.as_json:
        return listing.report_records(code, which, map(output.call_to_record, calls), no)
    describe = output.describe_caller if is_called else output.describe_callee
    lines = [describe(call, (await code.read(call.path, call.line, call.line)).text) for call in calls]
    return listing.report_lines(lines, no)


def _describe_snapshot(code: CodeSearch) -> str:
    return f"{code.repository} at {code.commit.sha[:7]}"


@dataclass(frozen=True, kw_only=True)
class BatchQuery:
    """One query and the name for its hits."""

    id: str | int
    query: str


class InvalidBatchLine(ValueError):
    """A line is not a query; the text explains why."""


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
    """Answer every readable line, in order; fails if there was another."""
    bad = 0
    for number, raw in enumerate(lines, start=1):
        try:
            line = parse_batch_line(raw.decode()) if raw.strip() else None
        except ValueError as error:  # InvalidBatchLine, and bytes that are not UTF-8
            bad += 1
            complain(f"line {number}: {error}")
            continue
        if line is not None:
            hits = await code.search(line.query, limit=query.limit, filters=query.filters, mode=query.mode)
            write(output.to_json({"id": line.id, "hits": [output.hit_to_record(hit) for hit in hits]}))
    return CommandOutcome(ok=not bad, note=f"{bad} line{'s' * (bad != 1)} could not be read." if bad else "")
