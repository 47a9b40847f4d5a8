"""What an extractive answer is made from, and what it turns out to be about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.answers.excerpts import QuestionWeights
from agent.evidence.requests import read_literal
from agent.ports import Deps
from agent.questions.literals import find_literals
from agent.state import EvidenceRef, Lookup, RetrievalMetadata, Role, RouterDecision


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

    def of(self, *roles: Role) -> list[EvidenceRef]:
        """Return what was retrieved in these roles, in order."""
        return [ref for ref in self.retrieved if ref["role"] in roles]

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
    def emphasis(self) -> QuestionWeights:
        """The words and the quoted texts that an excerpt should show."""
        searched = map(read_literal, self.decision["requests"])
        literals = [*(literal for literal in searched if literal is not None), *find_literals(self.question)]
        return QuestionWeights(terms=self.terms, literals=tuple(dict.fromkeys(literals)))

    def definition_of(self, ref: EvidenceRef) -> EvidenceRef | None:
        """Return the definition that a hit is about, if it was fetched."""
        same = (one for one in self.expanded if one["path"] == ref["path"] and one["symbol"] == ref["symbol"])
        return next(same, None) if ref["symbol"] else None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSubject:
    """What an answer led with, for the next question's "it"."""

    symbol: str = ""
    kind: str = ""
