"""The tool that tells a file's past."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from agent.evidence.refs import make_lines_ref
from agent.ports import Deps
from agent.tools.files import find_indexed_file
from agent.tools.report import ToolReport
from agent.tools.tool import Tool, ToolEvidence
from indexer.models import Location, Revision

MAX_REVISIONS = 20


class HistoryArguments(BaseModel):
    """A file, or one line of it."""

    path: str = Field(min_length=1, description="The path from the root of the repository.")
    line: int = Field(default=0, ge=0, description="A line to blame; 0 for the file alone.")


class ReadFileHistory(Tool[HistoryArguments]):
    """Tells who changed a file, when, and why."""

    name = "file_history"
    description = "List the commits that changed a file, and the commit that last changed one of its lines."
    arguments = HistoryArguments
    label = "Reading the history of"
    argument_shown = "path"
    only_reads = True

    async def run(self, args: HistoryArguments, deps: Deps) -> ToolEvidence:
        """List commits up to the indexed one, newest first; people are named, their addresses are not."""
        entry = await find_indexed_file(deps.code, args.path)
        history = await deps.code.history(entry.path, line=args.line, limit=MAX_REVISIONS)
        line = max(history.line, 1)
        ref = make_lines_ref(
            Location(path=entry.path, start_line=line, end_line=line), "lines", language=entry.language
        )
        report = ToolReport(deps)
        if history.last_changed is not None:
            report.cite(ref, f"line {line} was last changed by {_format_revision(history.last_changed)}")
        else:
            report.cite(
                ref, "commits that changed this file, newest first" if history.revisions else "no history is known"
            )
        for revision in history.revisions:
            report.say(_format_revision(revision))
        if not history.complete:
            report.say("Older commits are left out.")
        return report.evidence()


def _format_revision(revision: Revision) -> str:
    day = datetime.fromtimestamp(revision.committed_at, UTC).date().isoformat()
    return f"{revision.sha[:12]} on {day} by {revision.author}: {revision.subject}"
