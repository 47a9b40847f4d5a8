"""An answer while it is written: paragraphs that go out as they are finished, and the citations behind the marks."""

from __future__ import annotations

from dataclasses import dataclass

from agent.answers.markdown import replace_control_characters
from agent.ports import Deps
from agent.state import CitationRef
from indexer.models import Location

LONGEST_RANGE = 200


class AnswerBuilder:
    """Collects paragraphs and citations; lines that are cited twice share a mark."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._paragraphs: list[str] = []
        self._marks: dict[Location, int] = {}

    def cite(self, location: Location) -> str:
        """Return the mark of these lines; of a very long range, of its first lines."""
        end = min(location.end_line, location.start_line + LONGEST_RANGE - 1)
        lines = Location(path=location.path, start_line=location.start_line, end_line=end)
        return f"[{self._marks.setdefault(lines, len(self._marks) + 1)}]"

    def say(self, paragraph: str) -> None:
        """Add a paragraph and send it out; secrets in it are masked first."""
        text = self._deps.redact(paragraph)
        self._deps.emit("token", text=f"\n\n{text}" if self._paragraphs else text)
        self._paragraphs.append(text)

    @property
    def marks_used(self) -> int:
        """How many different places are cited so far."""
        return len(self._marks)

    @property
    def text(self) -> str:
        """The answer as Markdown."""
        return "\n\n".join(self._paragraphs)

    @property
    def citations(self) -> list[CitationRef]:
        """What the marks stand for, in order."""
        return [
            {"mark": mark, "path": lines.path, "start_line": lines.start_line, "end_line": lines.end_line}
            for lines, mark in self._marks.items()
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """Lines of the repository, masked and printable, with the number of the first."""

    lines: list[str]
    first_line: int
    language: str


async def read_quote(deps: Deps, location: Location) -> Quote:
    """Read lines at the pinned commit; their number never changes by masking."""
    passage = await deps.code.read(location.path, location.start_line, location.end_line)
    lines = [line.removesuffix("\r") for line in passage.text.removesuffix("\n").split("\n")]
    masked = deps.redact("\n".join(lines)).split("\n")
    return Quote(
        lines=[replace_control_characters(line) for line in masked],
        first_line=passage.location.start_line,
        language=passage.language,
    )
