"""Builds an answer paragraph by paragraph, with the evidence that it is made from and its citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent.evidence.refs import LONGEST_RANGE, make_lines_ref
from agent.ports import Deps
from agent.repositories.labels import add_label
from agent.state import (
    CitationRef,
    Continuation,
    EvidenceRef,
    Lookup,
    RetrievalMetadata,
    Role,
    RouterDecision,
    to_citation,
)
from agent.text.citation_markers import format_marker
from indexer.types import Location


class AnswerBuilder:
    """Collects paragraphs and citations; lines that are cited twice share a marker."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._paragraphs: list[str] = []
        self._marks: dict[Location, int] = {}
        self.read: list[EvidenceRef] = []
        self._repository = self._label = ""

    def begin_part(self, repository: str, label: str) -> None:
        """Cite from now on what one of several repositories has, as it knows it; empty names end that."""
        self._repository, self._label = repository, label

    def cite(self, location: Location) -> str:
        """Return the marker of these lines; of a very long range, of its first lines."""
        end = min(location.end_line, location.start_line + LONGEST_RANGE - 1)
        lines = replace(location, end_line=end)
        if self._label:
            lines = add_label(self._label, lines) if lines.path else replace(lines, repository=self._repository)
        return format_marker(self._marks.setdefault(lines, len(self._marks) + 1))

    def cite_read(self, location: Location) -> str:
        """Return the marker of lines that were read while the answer was written."""
        mark = self.cite(location)
        self.read.append(make_lines_ref(list(self._marks)[int(mark[1:-1]) - 1], "hit"))
        return mark

    def say(self, paragraph: str) -> None:
        """Add a paragraph and send it; secrets in it are masked first."""
        text = self._deps.redact(paragraph)
        self._deps.emit("token", text=f"\n\n{text}" if self._paragraphs else text)
        self._paragraphs.append(text)

    @property
    def text(self) -> str:
        """The answer as Markdown."""
        return "\n\n".join(self._paragraphs)

    @property
    def citations(self) -> list[CitationRef]:
        """What the markers stand for, in order."""
        return [to_citation(mark, lines) for lines, mark in self._marks.items()]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerContext:
    """Everything that an answer is made of."""

    deps: Deps
    question: str
    terms: frozenset[str]
    decision: RouterDecision
    retrieved: Sequence[EvidenceRef]
    expanded: Sequence[EvidenceRef]
    metadata: RetrievalMetadata
    skip: int = 0  # entries of a list that an earlier answer has shown

    def of(self, *roles: Role) -> list[EvidenceRef]:
        """Return what was retrieved in these roles, in order."""
        return [ref for ref in self.retrieved if ref["role"] in roles]

    @property
    def facts(self) -> Mapping[str, str]:
        """What the evidence itself does not say, by name."""
        return self.metadata.get("facts", {})

    @property
    def lookup(self) -> Lookup:
        """What the first request was for."""
        requests = self.decision["requests"]
        return requests[0]["lookup"] if requests else "search"

    @property
    def name(self) -> str:
        """The name or text that the first request was about."""
        requests = self.decision["requests"]
        return requests[0]["query"] if requests else self.question

    @property
    def is_of_kind(self) -> bool:
        """Whether the question is of one of the kinds that have an answer of their own."""
        return any("parts" in request for request in self.decision["requests"])

    @property
    def parts(self) -> Mapping[str, str]:
        """The named parts of a question of some kind, such as its `target`."""
        requests = self.decision["requests"]
        return requests[0].get("parts", {}) if requests else {}

    def definition_of(self, ref: EvidenceRef) -> EvidenceRef | None:
        """Return the definition that a hit is about, if it was fetched."""
        same = (one for one in self.expanded if one["path"] == ref["path"] and one["symbol"] == ref["symbol"])
        return next(same, None) if ref["symbol"] else None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSubject:
    """What an answer led with, for the next question's "it", and what it left out, for "more".

    It `is_pointing` where it has places alone, none of which stands out, for a question that names nothing of the code.
    """

    symbol: str = ""
    kind: str = ""
    more: Continuation | None = None
    is_pointing: bool = False
