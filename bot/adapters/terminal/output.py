"""What is found, as records of JSON and as lines of plain text: pure functions."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent import Answer
from bot.markdown import format_location, to_one_line
from bot.repositories.status import RepositoryState
from indexer import PLAIN_REASONS, CallSite, Definition, Hit, IndexStatus, RefreshReport

_MOST_PLAIN = 10  # files that are named


def to_json(record: Mapping[str, Any]) -> str:
    """Write a record on one line; everything beyond ASCII is escaped, so it passes through any terminal or pipe."""
    return json.dumps(record)


def answer_to_record(answer: Answer) -> dict[str, Any]:
    """Describe an answer."""
    citations = [
        {
            "path": cited.path,
            "start_line": cited.start_line,
            "end_line": cited.end_line,
            "commit": cited.commit,
            "url": cited.url,
        }
        for cited in answer.citations
    ]
    return {
        "answer": answer.text,
        "citations": citations,
        "repository": answer.repository,
        "commit": answer.commit,
        "intent": answer.intent,
        "route": answer.route,
        "model": answer.model,
        "seconds": round(answer.seconds, 3),
    }


def hit_to_record(hit: Hit) -> dict[str, Any]:
    """Describe a hit; its symbol is the first that begins in the chunk, else the one around it."""
    return {
        "path": hit.location.path,
        "start_line": hit.location.start_line,
        "end_line": hit.location.end_line,
        "symbol": _get_symbol_name(hit) or None,
        "score": round(hit.score, 6),
    }


def format_hit(hit: Hit) -> str:
    """Write a hit on one line: where, what, how good."""
    where = format_location(hit.location.path, hit.location.start_line, hit.location.end_line)
    return "  ".join(part for part in (where, to_one_line(_get_symbol_name(hit)), f"{hit.score:.3f}") if part)


def definition_to_record(definition: Definition) -> dict[str, Any]:
    """Describe a definition."""
    return {"path": definition.path, **dataclasses.asdict(definition.symbol)}


def format_definition(definition: Definition) -> str:
    """Write a definition on one line: where, its kind, its signature."""
    symbol = definition.symbol
    where = format_location(definition.path, symbol.start_line, symbol.end_line)
    return f"{where}  {symbol.kind}  {to_one_line(symbol.signature or symbol.qualified_name)}"


def call_to_record(call: CallSite) -> dict[str, Any]:
    """Describe a call; `caller` is null at module level, `callee` where the name is not defined in the repository."""
    return {
        "path": call.path,
        "line": call.line,
        "name": call.name,
        "caller": definition_to_record(call.caller) if call.caller else None,
        "callee": definition_to_record(call.callee) if call.callee else None,
        "ambiguous": call.ambiguous,
    }


def format_caller(call: CallSite) -> str:
    """Write a call on one line, seen from what is called: where, and who calls."""
    caller = to_one_line(call.caller.symbol.qualified_name) if call.caller else "(module level)"
    return f"{format_location(call.path, call.line, call.line)}  {caller}{_format_ambiguity(call)}"


def format_callee(call: CallSite) -> str:
    """Write a call on one line, seen from who calls: where, what is called, and where that is defined."""
    symbol = call.callee.symbol if call.callee else None
    name = to_one_line(symbol.qualified_name if symbol else call.name)
    line = f"{format_location(call.path, call.line, call.line)}  {name}"
    if call.callee and symbol:
        line += f"  {format_location(call.callee.path, symbol.start_line, symbol.end_line)}"
    return line + _format_ambiguity(call)


def report_to_record(report: RefreshReport, repository: str) -> dict[str, Any]:
    """Describe what a refresh did."""
    return {"repository": repository, **dataclasses.asdict(report)}


def format_refresh_report(report: RefreshReport, repository: str) -> str:
    """Write what a refresh did as a sentence."""
    changes = f"{report.changed:,} parsed, {report.removed:,} gone"
    return (
        f"Indexed {to_one_line(repository)} at {report.commit[:7]}: {report.files:,} files, {report.chunks:,} chunks "
        f"in {report.seconds:.1f} s ({changes})."
    )


def status_to_record(status: IndexStatus) -> dict[str, Any]:
    """Describe an index; bytes of its path that are no UTF-8 stand as `\\xNN`."""
    path = os.fsencode(status.path).decode("utf-8", "backslashreplace")
    return dataclasses.asdict(status) | {"path": path}


def format_status(status: IndexStatus) -> str:
    """Write what is indexed as a few lines."""
    rows = [("repository", f"{to_one_line(status.repository)} ({to_one_line(status.path)})")]
    if status.commit is None:
        rows.append(("indexed", "not yet: the first question or `citebot index` does it"))
    else:
        rows += [
            ("indexed", _format_indexed_commit(status)),
            ("contents", f"{status.files:,} files, {status.chunks:,} chunks, {status.symbols:,} symbols"),
            ("embedder", status.embedder),
        ]
    rows.append(("on disk", f"{status.disk_bytes / 1_000_000:.1f} MB"))
    if status.skipped:
        rows.append(("skipped", ", ".join(f"{count:,} {why}" for why, count in sorted(status.skipped.items()))))
    rows += [("plain text", text) for text in _list_plain_files(status)]
    rows += [("warning", to_one_line(warning)) for warning in status.warnings]
    return "\n".join(f"{name:<12}{value}" for name, value in rows)


def state_to_record(state: RepositoryState) -> dict[str, Any]:
    """Describe the state of a repository; little is known of one that cannot be read."""
    known = status_to_record(state.status) if state.status is not None else {"repository": state.name}
    return known | {"state": state.state, "sentence": state.sentence}


def format_state(state: RepositoryState) -> str:
    """Write the state of a repository as a few lines, the state itself last."""
    known = format_status(state.status) if state.status is not None else f"{'repository':<12}{to_one_line(state.name)}"
    state_line = to_one_line(": ".join(filter(None, (state.state, state.sentence))))
    return f"{known}\n{'state':<12}{state_line}"


def _get_symbol_name(hit: Hit) -> str:
    return hit.symbols[0].qualified_name if hit.symbols else hit.scope


def _format_ambiguity(call: CallSite) -> str:
    return "  (one of several of that name)" if call.ambiguous else ""


def _format_indexed_commit(status: IndexStatus) -> str:
    branch = f" on {to_one_line(status.branch)}" if status.branch else ""
    text = f"{(status.commit or '')[:7]}{branch}"
    if status.indexed_at is not None:
        text += f", {datetime.fromtimestamp(status.indexed_at).astimezone():%Y-%m-%d %H:%M}"
    if status.commits_behind:
        text += f", {status.commits_behind:,} commit{'s' * (status.commits_behind != 1)} behind HEAD"
    return text


def _list_plain_files(status: IndexStatus) -> list[str]:
    lines = [f"{to_one_line(file.path)}: {PLAIN_REASONS[file.reason]}" for file in status.plain_files[:_MOST_PLAIN]]
    more = len(status.plain_files) - len(lines)
    return [*lines, f"and {more:,} more"] if more else lines


@dataclass(frozen=True, kw_only=True)
class CommandOutcome:
    """What a command has to say: `output` for standard output, `note` for standard error, and whether it succeeded."""

    output: str = ""
    note: str = ""
    ok: bool = True
