"""Results as the text that an agent reads: where, what and how to see the rest, without the names of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.markdown import to_one_line
from bot.surfaces.ask_events import Answered
from bot.surfaces.lookup_results import (
    CallResult,
    CodeResult,
    FileText,
    FolderListing,
    FoundCall,
    FoundCommit,
    GrepResult,
    HistoryResult,
    Lookup,
    NamedPlace,
    RepositoryListing,
    SurfaceValue,
    SymbolResult,
)


def write_text(result: SurfaceValue) -> str:
    """Write a result as text."""
    return _WRITERS[type(result)](result)


def _write_hits(result: CodeResult) -> str:
    parts = [
        f"{to_one_line(hit.path)}:{hit.first_line}-{hit.last_line}"
        f"{f'  {to_one_line(hit.symbol)}' if hit.symbol else ''}\n{hit.code}"
        for hit in result.hits
    ]
    return "\n\n".join([_write_head(result, "places", len(result.hits)), *parts])


def _write_matches(result: GrepResult) -> str:
    lines = [f"{to_one_line(one.path)}:{one.line}: {one.text}" for one in result.matches]
    return "\n".join([_write_head(result, "lines", len(lines)), *lines])


def _write_file(result: FileText) -> str:
    lines = f"lines {result.first_line}-{result.last_line} of {result.total:,}" if result.code else "no lines"
    rest = f"; first_line={result.next} has the rest" if result.next is not None else ""
    head = f"{_name(result)}: {to_one_line(result.path)}, {lines}{rest}."
    return "\n".join(filter(None, [head, result.note, result.code]))


def _write_listing(result: FolderListing) -> str:
    lines = [
        f"{to_one_line(one.path)}/  {one.files:,} files, {one.lines:,} lines"
        if one.is_folder
        else f"{to_one_line(one.path)}  {one.lines:,} lines{f', {one.language}' if one.language else ''}"
        for one in result.entries
    ]
    return "\n".join([_write_head(result, "paths", len(lines)), *lines])


def _write_symbols(result: SymbolResult) -> str:
    parts = [
        "\n".join(
            filter(None, [
                f"{to_one_line(one.path)}:{one.first_line}-{one.last_line}  {one.kind} {to_one_line(one.name)}",
                to_one_line(one.signature),
                to_one_line(one.doc),
            ])
        )
        for one in result.symbols
    ]  # fmt: skip
    similar = f"Names that begin so: {', '.join(map(to_one_line, result.similar))}" if result.similar else ""
    return "\n\n".join(filter(None, [_write_head(result, "definitions", len(parts)), *parts, similar]))


def _write_calls(result: CallResult) -> str:
    return "\n".join([_write_head(result, "calls", len(result.calls)), *map(_write_call, result.calls)])


def _write_call(call: FoundCall) -> str:
    maybe = "" if call.is_certain else "possibly "
    caller = to_one_line(call.caller.name) if call.caller else "(module level)"
    called = _write_place(call.callee) if call.callee else to_one_line(call.name)
    return f"{to_one_line(call.path)}:{call.line}  {caller} calls {maybe}{called}: {call.code}"


def _write_place(place: NamedPlace) -> str:
    return f"{to_one_line(place.name)} ({to_one_line(place.path)}:{place.first_line})"


def _write_history(result: HistoryResult) -> str:
    last = result.last_changed
    line = f"Line {result.line} was last written by {_write_commit(last)}" if last is not None else ""
    commits = map(_write_commit, result.commits)
    return "\n".join(filter(None, [_write_head(result, "commits", len(result.commits)), line, *commits]))


def _write_commit(commit: FoundCommit) -> str:
    return f"{commit.commit[:12]}  {commit.date}  {to_one_line(commit.author)}: {to_one_line(commit.subject)}"


def _write_repositories(result: RepositoryListing) -> str:
    lines = []
    for one in result.repositories:
        at = f"at {one.commit[:12]}" if one.commit else "not indexed yet"
        branch = f" on {to_one_line(one.branch)}" if one.branch else ""
        behind = f", {one.commits_behind} commits behind" if one.commits_behind else ""
        lines.append(f"{to_one_line(one.repository)} {at}{branch}{behind}; {one.files:,} files")
        lines += [f"  {to_one_line(warning)}" for warning in one.warnings]
    rest = f"; offset={result.next} has the next ones" if result.next is not None else ""
    count = "1 repository" if result.total == 1 else f"{result.total} repositories"
    return "\n".join([f"{count}{rest}.", *lines])


def _write_answer(answer: Answered) -> str:
    sources = [
        f"[{one.mark}] {to_one_line(one.path)}:{one.first_line}-{one.last_line}"
        f"{f'  {to_one_line(one.url)}' if one.url else ''}"
        if one.path
        else f"[{one.mark}] commit {one.commit[:12]}"
        for one in answer.citations
    ]
    freshness = answer.freshness or ", ".join(f"{name} at {sha[:12]}" for name, sha in answer.commits.items())
    return "\n\n".join(filter(None, [answer.text, "\n".join(sources), freshness]))


def _name(result: Lookup) -> str:
    return f"{to_one_line(result.repository)} at {result.commit[:12]}"


def _write_head(result: Lookup, what: str, shown: int) -> str:
    """Say where this was read, how much there is, and how to see the rest."""
    total = f"{result.total:,}" if result.is_total_exact else f"at least {result.total:,}"
    is_all = shown == result.total and result.is_total_exact
    noun = what.removesuffix("s") if is_all and shown == 1 else what
    counted = f"{total} {noun}" if is_all else f"{shown} of {total} {what}"
    rest = f"; offset={result.next} has the next ones" if result.next is not None else ""
    return f"{_name(result)}: {counted}{rest}." + (f" {result.note}" if result.note else "")


_WRITERS: Mapping[type[SurfaceValue], Callable[..., str]] = {
    CodeResult: _write_hits,
    GrepResult: _write_matches,
    FileText: _write_file,
    FolderListing: _write_listing,
    SymbolResult: _write_symbols,
    CallResult: _write_calls,
    HistoryResult: _write_history,
    RepositoryListing: _write_repositories,
    Answered: _write_answer,
}
