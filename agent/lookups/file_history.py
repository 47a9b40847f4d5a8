"""The commits of a file, and who last wrote a line of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent.evidence.refs import make_lines_ref
from agent.history.commit_refs import describe_commit, describe_shallow, format_day, make_commit_ref, name_horizon
from agent.lookups.lookup import ROOT_PATH, Arguments, CodeLookup, Look, Offset, Path
from agent.lookups.read_file import find_indexed_file
from agent.lookups.results import FoundCommit, HistoryResult
from agent.lookups.tool import HISTORY
from indexer.types import Revision

MAX_COMMITS = 200
_LONGEST_SUBJECT = 200


class HistoryArguments(Arguments):
    """A file, or one line of it."""

    path: Annotated[Path, Field(min_length=1, description=ROOT_PATH)]
    line: Annotated[int, Field(ge=0, le=10_000_000, description="A line to blame; 0 for the file alone.")] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class FileHistory(CodeLookup[HistoryArguments, HistoryResult]):
    """Finds who changed a file, when, and why."""

    name = "file_history"
    title = "History of a file"
    description = (
        "List the commits that changed a file, and with `line` the one that last wrote a line of it; repository_log "
        "has their messages."
    )
    arguments = HistoryArguments
    result = HistoryResult
    label = "Reading the history of"
    argument_shown = "path"
    cost = HISTORY

    async def find(self, args: HistoryArguments, look: Look) -> HistoryResult:
        """List commits up to the indexed one, newest first; people are named, their addresses are not."""
        entry = await find_indexed_file(look.code, args.path)
        wanted = min(args.offset + args.limit + 1, MAX_COMMITS)
        history = await look.code.history(entry.path, line=args.line, limit=wanted)
        page, last = look.take_page(history.revisions, args.limit, args.offset), history.last_changed
        look.head["is_total_exact"] = history.complete
        if not history.revisions:
            look.note("No history is known.")
        if history.horizon is not None:
            look.note(describe_shallow(name_horizon(history.horizon)))
        if last is not None:
            passage = await look.code.read(entry.path, history.line, history.line)
            look.show(make_lines_ref(passage.location, "lines", language=entry.language), passage.text)
            look.say(f"Line {history.line} was last changed by commit {last.sha[:12]}{'.' if last in page else ':'}")
            if last not in page:
                look.cite(make_commit_ref(last), describe_commit(last))
        if page:
            look.say(f"Commits that changed {entry.path}, newest first:")
        for revision in page:
            look.cite(make_commit_ref(revision), describe_commit(revision))
        return HistoryResult(
            **look.head,
            path=entry.path,
            commits=tuple(show_commit(one, look) for one in page),
            line=history.line,
            last_changed=show_commit(last, look) if last is not None else None,
        )


def show_commit(revision: Revision, look: Look) -> FoundCommit:
    """Describe a commit; people are named, their addresses are not."""
    return FoundCommit(
        commit=revision.sha,
        author=look.mask(revision.author)[:_LONGEST_SUBJECT],
        date=format_day(revision.committed_at),
        subject=look.mask(revision.subject)[:_LONGEST_SUBJECT],
    )
