"""The text that a model writes to the person: streamed, cleaned, checked as a whole, and taken back on failure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agent import chat
from agent.answers.answer_parts import AnswerSubject
from agent.errors import (
    AnswerEmpty,
    AnswerLeaked,
    AnswerTruncated,
    AnswerUnwritten,
    BudgetExceeded,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    QuotaExceeded,
)
from agent.guard.leak_check import has_leaked_instructions, has_masked_values
from agent.ports import ChatModel, Deps
from agent.prompts.model_text import CitationParser, StreamSanitizer
from agent.prompts.prompt_evidence import PromptEvidence
from agent.state import CitationRef, EvidenceRef

CUT = "*(The answer was cut here: it reached the length limit.)*"
BROKEN_OFF = "*(The answer ends here: the language model was interrupted.)*"
LONGEST_OPENING = 200  # characters without a citation that may yet turn out to be words before a call
_MIN_OVERLAP = 8  # characters that a continuation repeats
# Anyone who answered may go on, or another model in its place.
_PASSING = (ModelUnavailable, ModelTimeout, QuotaExceeded, BudgetExceeded)
_CONTINUE = (
    "The connection broke off in the middle of your answer. Continue from where it ends: write only what comes next, "
    "in the same form, and repeat nothing."
)

log = logging.getLogger(__name__)


class ModelAnswer:
    """Takes the pieces of an answer.

    With `may_call` its opening is held back, because a model may announce its next step. `messages` is the prompt,
    instructions first; `shown` is the evidence that it may cite.
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
        self._shown = shown
        self._may_call = may_call
        self._remark = ""
        self._sent_before = ""
        self._written = ""
        self._opening: str | None = None
        self._start_anew()

    @property
    def has_sent(self) -> bool:
        """Whether the person has seen any of it."""
        return bool(self._stream.output_text)

    @property
    def is_shown(self) -> bool:
        """Whether the person has seen any of it since it was last begun."""
        return self._stream.output_text != self._sent_before

    @property
    def citations(self) -> list[CitationRef]:
        """The citations behind the marks in the text."""
        return self._parser.citations

    def begin(self) -> None:
        """Begin again, or continue after text that the person has seen."""
        if self.has_sent:
            self._opening = ""
        else:
            self._start_anew()
        self._sent_before = self._stream.output_text

    def write(self, piece: str) -> None:
        """Take a piece; `AnswerTruncated` if the answer is as long as one may be."""
        if self._opening is not None:
            self._opening += piece
            if len(self._opening) < LONGEST_OPENING and (self._written or "[" not in self._opening):
                return
            piece = self._release_opening()
        self._take(piece)
        if self._stream.is_full:
            raise AnswerTruncated("An answer was cut at the longest that one may be.")

    def break_off(self) -> str:
        """Return the text without its unfinished last word; a continuation follows."""
        dropped = self._stream.drop_word()
        self._written = self._written[: len(self._written) - dropped]
        return self._written

    def cut(self, remark: str) -> None:
        """Say below the text why it ends there."""
        self._remark = remark

    def finish(self, reply: chat.AIMessage | None = None) -> str:
        """Return the whole text; raises `AnswerLeaked`, or `AnswerEmpty` if it consists only of calls."""
        if self._opening:
            self._take(self._release_opening())
        if self._remark:
            self._stream.close(self._remark)
        text = self._stream.finish()
        if not any(map(str.isalnum, text.removesuffix(self._remark))):
            if reply is not None and (reply.tool_calls or reply.invalid_tool_calls):
                raise AnswerUnwritten("The language model called tools where it was to write the answer.")
            raise AnswerEmpty("The language model gave an empty answer.")
        return text

    def retract(self) -> None:
        """Remove the text that the person has seen."""
        if self.has_sent:
            self._deps.emit("reset", text="")

    def _start_anew(self) -> None:
        self._parser = CitationParser(self._shown, self._deps.redact)
        self._stream = StreamSanitizer(self._deps, self._parser, holds=self._deps.is_hardened, check=self._check_leaks)
        self._written = ""
        self._opening = "" if self._may_call else None

    def _release_opening(self) -> str:
        """Return the held-back text, without repetitions of the text before it."""
        held, self._opening = self._opening or "", None
        for length in range(min(len(held), len(self._written)), _MIN_OVERLAP - 1, -1):
            if self._written.endswith(held[:length]):
                return held[length:]
        return held

    def _take(self, piece: str) -> None:
        self._written += piece
        self._stream.write(piece)

    def _check_leaks(self, text: str) -> None:
        """Refuse text that reveals the instructions or a masked value; code that contains the same may be quoted."""
        instructions, *told = [str(message.text) for message in self.messages]
        if has_leaked_instructions(text, instructions, told) or has_masked_values(text, self._deps.masked):
            raise AnswerLeaked("An answer was left out: it held instructions of the model, or a masked value.")


async def stream_answer(
    model: ChatModel, tools: Sequence[Mapping[str, Any]], answer: ModelAnswer, *, task: str
) -> chat.AIMessage | None:
    """Let a model write, and return its reply, which may be calls; None if only the text counts.

    If the connection breaks, the model continues from the shown text; failing that, the text is kept and marked as cut.
    Raises `ModelError` if the shown text cites nothing.
    """
    try:
        return await model.stream_with_tools(answer.messages, tools, answer, task=task)
    except AnswerTruncated:
        answer.cut(CUT)
        return None
    except _PASSING as error:
        if not answer.has_sent:
            raise
        log.warning("an answer that broke off is continued: %s", error)
    begun = [*answer.messages, chat.AIMessage(answer.break_off()), chat.HumanMessage(_CONTINUE)]
    try:
        await model.stream_with_tools(begun, tools, answer, task=task)
    except AnswerTruncated:
        answer.cut(CUT)
    except ModelError as error:
        if not answer.citations:  # a few words are worth less than the quotations that take their place
            raise
        log.warning("an answer is kept as far as it came: %s", error)
        answer.cut(BROKEN_OFF)
    return None


def find_subject(refs: Sequence[EvidenceRef]) -> AnswerSubject:
    """Return the subject of the question, for "it" in the next one: a name that was looked up, or else the best hit."""
    ref = next((ref for ref in refs if ref["role"] == "definition"), next(iter(refs), None))
    return AnswerSubject(symbol=ref["symbol"], kind=ref["kind"]) if ref is not None else AnswerSubject()
