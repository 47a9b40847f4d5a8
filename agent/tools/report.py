"""The text of a tool result while it is put together: bounded, masked, and referring to no line that is not in it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.answers.markdown import replace_control_characters
from agent.ports import Deps
from agent.state import EvidenceRef
from agent.tools.tool import ToolEvidence

MAX_CHARACTERS = 12_000
MAX_LINE = 400
ROOM_FOR_NOTES = 400


def make_evidence_id(ref: EvidenceRef) -> str:
    """Name the lines that a reference points at; the name is the same in every result of a commit."""
    return f"{ref['path']}:L{ref['start_line']}-L{ref['end_line']}"


class ToolReport:
    """Collects lines of text and pieces of evidence until there is no more room."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._lines: list[str] = []
        self._refs: list[EvidenceRef] = []
        self._room = MAX_CHARACTERS - ROOM_FOR_NOTES
        self.is_full = False

    def say(self, line: str) -> None:
        """Add a sentence of our own."""
        self._lines.append(self._clean(line)[: 2 * MAX_LINE])

    def cite(self, ref: EvidenceRef, line: str) -> None:
        """Add one line of text about the lines that a reference points at."""
        text = f"[{make_evidence_id(ref)}] {self._clean(line)[:MAX_LINE]}"
        if self._add_line(text):
            self._refs.append(ref)

    def show(self, ref: EvidenceRef, source: str, *, about: str = "") -> None:
        """Add lines of a file with their numbers; those that do not fit are left out of the reference too."""
        heading = f"[{make_evidence_id(ref)}]" + (f" {self._clean(about)[:MAX_LINE]}" if about else "")
        if not self._add_line(heading):
            return
        kept = self._add_numbered(ref["start_line"], self._clean(source).split("\n"))
        if kept:
            cut: EvidenceRef = {**ref, "end_line": min(ref["end_line"], ref["start_line"] + kept - 1)}
            self._lines[-kept - 1] = f"[{make_evidence_id(cut)}]" + heading.partition("]")[2]
            self._refs.append(cut)
        else:
            self._lines.pop()

    def evidence(self) -> ToolEvidence:
        """Return what was collected."""
        note = ["There is more; ask for less at a time."] if self.is_full else []
        return ToolEvidence(text="\n".join([*self._lines, *note]), refs=tuple(self._refs))

    def _add_numbered(self, first: int, lines: Sequence[str]) -> int:
        """Add lines while they fit and return how many did."""
        for count, line in enumerate(lines):
            if not self._add_line(f"{first + count:5} {line[:MAX_LINE]}"):
                return count
        return len(lines)

    def _add_line(self, line: str) -> bool:
        self._room -= len(line) + 1
        self.is_full = self.is_full or self._room < 0
        if not self.is_full:
            self._lines.append(line)
        return not self.is_full

    def _clean(self, text: str) -> str:
        return replace_control_characters(self._deps.redact(text))
