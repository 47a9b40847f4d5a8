"""The text that a model writes to the person: streamed, cleaned, checked as a whole, and taken back where it fails."""

from __future__ import annotations

from collections.abc import Sequence

from agent import chat
from agent.answers.answer_parts import AnswerSubject
from agent.errors import AnswerEmpty, AnswerLeaked, AnswerTruncated
from agent.guard.leak_check import has_leaked_instructions, has_masked_values
from agent.ports import Deps
from agent.prompts.model_text import CitationParser, StreamSanitizer
from agent.prompts.prompt_evidence import PromptEvidence
from agent.state import CitationRef, EvidenceRef

CUT = "*(The answer was cut here: it had reached the limit of its length.)*"
LONGEST_OPENING = 200  # characters without a citation that may yet turn out to be words before a call


class ModelAnswer:
    """Takes the pieces of an answer. With `may_call` its opening is held back: a model may say what it will do next.

    `messages` are what the model was told, the first of them its instructions; `shown` is what it may cite.
    """

    def __init__(
        self,
        deps: Deps,
        messages: Sequence[chat.BaseMessage],
        shown: Sequence[PromptEvidence],
        *,
        may_call: bool = False,
    ) -> None:
        self._deps = deps
        self.messages = messages
        self._parser = CitationParser(shown, deps.redact)
        self._stream = StreamSanitizer(deps, self._parser, holds=deps.is_hardened, check=self._check_leaks)
        self._opening: str | None = "" if may_call else None

    @property
    def has_sent(self) -> bool:
        """Whether the person has seen any of it."""
        return self._stream.has_sent

    @property
    def citations(self) -> list[CitationRef]:
        """What the marks in the text stand for."""
        return self._parser.citations

    def write(self, piece: str) -> None:
        """Take a piece; `AnswerTruncated` where the answer is as long as one may be."""
        if self._opening is not None:
            self._opening += piece
            if len(self._opening) < LONGEST_OPENING and "[" not in self._opening:
                return
            piece, self._opening = self._opening, None
        self._stream.write(piece)
        if self._stream.is_full:
            raise AnswerTruncated("An answer was cut at the longest that one may be.")

    def finish(self, *, is_cut: bool = False) -> str:
        """Return the whole text; raises `AnswerEmpty` or `AnswerLeaked`."""
        if self._opening:
            self._stream.write(self._opening)
        self._opening = None
        if is_cut:
            self._stream.close(CUT)
        text = self._stream.finish()
        if not any(map(str.isalnum, text.removesuffix(CUT))):
            raise AnswerEmpty("The language model gave an empty answer.")
        return text

    def retract(self) -> None:
        """Take back what the person has seen."""
        if self._stream.has_sent:
            self._deps.emit("reset", text="")

    def _check_leaks(self, text: str) -> None:
        """Refuse what reveals the instructions or what was masked; code that contains the same may be quoted."""
        instructions, *told = [str(message.text) for message in self.messages]
        if has_leaked_instructions(text, instructions, told) or has_masked_values(text, self._deps.masked):
            raise AnswerLeaked("An answer was left out: it held instructions of the model, or a masked value.")


def find_subject(refs: Sequence[EvidenceRef]) -> AnswerSubject:
    """Return what the question was about, for the next one's "it": a name looked up, else the best hit's."""
    ref = next((ref for ref in refs if ref["role"] == "definition"), next(iter(refs), None))
    return AnswerSubject(symbol=ref["symbol"], kind=ref["kind"]) if ref is not None else AnswerSubject()
