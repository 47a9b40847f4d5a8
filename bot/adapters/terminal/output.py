"""Formats results as JSON records and as lines of plain text: pure functions, and the theme of code."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bot.markdown import format_footnote, format_location, replace_control_characters, to_one_line
from indexer import PLAIN_REASONS, CallSite, Definition, Hit, IndexStatus, RefreshReport

if TYPE_CHECKING:
    from agent import Answer
    from bot.repositories.status import RepositoryState

CODE_THEME = "ansi_dark"  # the colours that the person chose for the terminal, light or dark
_MAX_PLAIN = 10  # files that are named
_MAX_CODE = 200  # characters of a line that are shown
_MAX_QUERY = 1_000  # characters whose words are looked for in lines
_WORD = re.compile(r"[^\W_]{3,}")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLine:
    """One result of a lookup, ready for display: its place, notes, and a line of code of the file at `path`."""

    path: str
    where: str
    notes: tuple[str, ...]
    code: str

    def __str__(self) -> str:
        return "  ".join(filter(None, (self.where, *self.notes, self.code)))


def trim_code(line: str) -> str:
    """Shorten a line of code for a table: no indentation, no control sequences, limited length."""
    code = replace_control_characters(line.strip()[: 2 * _MAX_CODE])
    return code if len(code) <= _MAX_CODE else f"{code[: _MAX_CODE - 1]}…"


def to_json(record: Mapping[str, Any]) -> str:
    """Write a record on one line, escaped to ASCII so that it passes through any terminal or pipe."""
    return json.dumps(record)


def answer_to_record(answer: Answer) -> dict[str, Any]:
    """Describe an answer as JSON."""
    citations = [
        {
            **({"repository": cited.repository} if cited.repository else {}),
            "path": cited.path,
            "start_line": cited.start_line,
            "end_line": cited.end_line,
            "commit": cited.commit,
            "url": cited.url,
        }
        for cited in answer.citations
    ]
    several = {"commits": dict(answer.commits), "missing": dict(answer.missing)} if answer.commits else {}
    return {
        **several,
        "answer": answer.text,
        "found": answer.found,
        "citations": citations,
        "repository": answer.repository,
        "commit": answer.commit,
        "intent": answer.intent,
        "route": answer.route,
        "model": answer.model,
        "seconds": round(answer.seconds, 3),
    }


def format_answer(answer: Answer) -> str:
    """Write an answer as plain text, with its citations and its author below."""
    paragraphs = [answer.text, "\n".join(map(format_footnote, answer.citations)), format_author(answer)]
    return "\n\n".join(filter(None, paragraphs))


def format_author(answer: Answer) -> str:
    """Name the model of an answer, and its time."""
    return f"{to_one_line(answer.model)}, {answer.seconds:.1f} s" if answer.model else ""


def hit_to_record(hit: Hit) -> dict[str, Any]:
    """Describe a hit as JSON; its symbol is the first in the chunk, else the surrounding one."""
    return {
        "path": hit.location.path,
        "start_line": hit.location.start_line,
        "end_line": hit.location.end_line,
        "symbol": _get_symbol_name(hit) or None,
        "score": round(hit.score, 6),
    }


def describe_hit(hit: Hit, query: str) -> CodeLine:
    """Describe a hit in one line: place, symbol, score, documentation, and the best matching line."""
    where = format_location(hit.location.path, hit.location.start_line, hit.location.end_line)
    code = choose_line(hit, query)
    doc = hit.symbols[0].doc if hit.symbols and hit.symbols[0].doc not in code else ""
    notes = (to_one_line(_get_symbol_name(hit)), f"{hit.score:.3f}", trim_code(doc))
    return CodeLine(path=hit.location.path, where=where, notes=notes, code=trim_code(code))


def choose_line(hit: Hit, query: str) -> str:
    """Choose the line of a hit with most words of a query, by default that of its first definition."""
    lines = hit.text.split("\n")
    words = set(_WORD.findall(query[:_MAX_QUERY].casefold()))
    counts = [sum(word in line.casefold() for word in words) for line in lines]
    if any(counts):
        return lines[counts.index(max(counts))]
    begins = hit.symbols[0].start_line - hit.location.start_line if hit.symbols else -1
    return lines[begins] if 0 <= begins < len(lines) else next(filter(str.strip, lines), "")


def definition_to_record(definition: Definition) -> dict[str, Any]:
    """Describe a definition as JSON."""
    return {"path": definition.path, **dataclasses.asdict(definition.symbol)}


def describe_definition(definition: Definition) -> CodeLine:
    """Describe a definition in one line: place, kind, signature."""
    symbol = definition.symbol
    where = format_location(definition.path, symbol.start_line, symbol.end_line)
    # A signature over several lines ends with a comma, or a blank.
    code = to_one_line(symbol.signature or symbol.qualified_name).replace("( ", "(").replace(", )", ")")
    code = code.replace(" )", ")")
    return CodeLine(path=definition.path, where=where, notes=(symbol.kind,), code=trim_code(code))


def call_to_record(call: CallSite) -> dict[str, Any]:
    """Describe a call as JSON; `caller` is null at module level, `callee` for an external name."""
    return {
        "path": call.path,
        "line": call.line,
        "name": call.name,
        "caller": definition_to_record(call.caller) if call.caller else None,
        "callee": definition_to_record(call.callee) if call.callee else None,
        "ambiguous": call.ambiguous,
    }


def describe_caller(call: CallSite, code: str) -> CodeLine:
    """Describe a call in one line for the callee: place, caller, and its code."""
    caller = to_one_line(call.caller.symbol.qualified_name) if call.caller else "(module level)"
    return _describe_call(call, (caller, _format_ambiguity(call)), code)


def describe_callee(call: CallSite, code: str) -> CodeLine:
    """Describe a call in one line for the caller: place, callee, its definition, and the code."""
    symbol = call.callee.symbol if call.callee else None
    name = to_one_line(symbol.qualified_name if symbol else call.name)
    target = format_location(call.callee.path, symbol.start_line, symbol.end_line) if call.callee and symbol else ""
    return _describe_call(call, (name, target, _format_ambiguity(call)), code)


def _describe_call(call: CallSite, notes: tuple[str, ...], code: str) -> CodeLine:
    where = format_location(call.path, call.line, call.line)
    return CodeLine(path=call.path, where=where, notes=notes, code=trim_code(code))


def report_to_record(report: RefreshReport, repository: str) -> dict[str, Any]:
    """Describe a refresh as JSON."""
    return {"repository": repository, **dataclasses.asdict(report)}


def format_refresh_report(report: RefreshReport, repository: str) -> str:
    """Describe a refresh in a sentence."""
    changes = f"{report.changed:,} parsed, {report.removed:,} gone"
    return (
        f"Indexed {to_one_line(repository)} at {report.commit[:7]}: {report.files:,} files, {report.chunks:,} chunks "
        f"in {report.seconds:.1f} s ({changes})."
    )


def status_to_record(status: IndexStatus) -> dict[str, Any]:
    r"""Describe an index as JSON; bytes of its path that are not UTF-8 are written as `\xNN`."""
    path = os.fsencode(status.path).decode("utf-8", "backslashreplace")
    return dataclasses.asdict(status) | {"path": path}


def format_status(status: IndexStatus) -> str:
    """Describe an index in a few lines."""
    rows = [("repository", f"{to_one_line(status.repository)} ({to_one_line(status.path)})")]
    if status.commit is None:
        rows.append(("indexed", "not yet: the first question or `citebot index` indexes it"))
    else:
        rows += [
            ("indexed", _format_indexed_commit(status)),
            ("contents", f"{status.files:,} files, {status.chunks:,} chunks, {status.symbols:,} symbols"),
            ("embedder", status.embedder),
        ]
    rows.append(("on disk", f"{status.disk_bytes / 1_000_000:.1f} MB"))
    if status.skipped:
        rows.append(("skipped", ", ".join(f"{count:,} {why}" for why, count in sorted(status.skipped.items()))))
    lines = [f"{to_one_line(file.path)}: {PLAIN_REASONS[file.reason]}" for file in status.plain_files[:_MAX_PLAIN]]
    more = len(status.plain_files) - len(lines)
    rows += [("plain text", text) for text in ([*lines, f"and {more:,} more"] if more else lines)]
    rows += [("warning", to_one_line(warning)) for warning in status.warnings]
    return "\n".join(f"{name:<12}{value}" for name, value in rows)


def state_to_record(state: RepositoryState) -> dict[str, Any]:
    """Describe the state of a repository as JSON; little is known of an unreadable one."""
    known = status_to_record(state.status) if state.status is not None else {"repository": state.name}
    return known | {"state": state.state, "sentence": state.sentence}


def format_state(state: RepositoryState) -> str:
    """Describe the state of a repository in a few lines, the state itself last."""
    known = format_status(state.status) if state.status is not None else f"{'repository':<12}{to_one_line(state.name)}"
    state_line = to_one_line(": ".join(filter(None, (state.state, state.sentence))))
    return f"{known}\n{'state':<12}{state_line}"


def _get_symbol_name(hit: Hit) -> str:
    return hit.symbols[0].qualified_name if hit.symbols else hit.scope


def _format_ambiguity(call: CallSite) -> str:
    return "(one of several of that name)" if call.ambiguous else ""


def _format_indexed_commit(status: IndexStatus) -> str:
    branch = f" on {to_one_line(status.branch)}" if status.branch else ""
    text = f"{(status.commit or '')[:7]}{branch}"
    if status.indexed_at is not None:
        text += f", {datetime.fromtimestamp(status.indexed_at).astimezone():%Y-%m-%d %H:%M}"
    if status.commits_behind:
        text += f", {status.commits_behind:,} commit{'s' * (status.commits_behind != 1)} behind HEAD"
    return text


@dataclass(frozen=True, kw_only=True)
class CommandOutcome:
    """The output of a command: `output` for standard output, `note` for standard error, and whether it succeeded.

    `data` replaces the output for programs, byte for byte.
    """

    output: str = ""
    data: bytes = b""
    note: str = ""
    ok: bool = True
