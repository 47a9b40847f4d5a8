"""An answer on its way, with a section for each repository that was asked about, as the content of one message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from agent.events import AgentEvent
from agent.ports import Answer
from bot.drafts import StreamingAnswer, make_feedback_buttons
from bot.markdown.safety import neutralize
from bot.messages import Button, MessageContent
from bot.turn_records import RunStats, TurnRecord

UNANSWERED = "Not answered in time. Ask about this repository alone, or for something narrower."
WAITS = "This would need a person's approval. Ask about this repository alone."


@dataclass
class AnswerSection:
    """What is told about one repository; `failure` says why there will be no answer."""

    repository: str
    draft: StreamingAnswer
    tally: RunStats = field(default_factory=RunStats)
    failure: str = ""

    def take(self, event: AgentEvent) -> bool:
        """Bring in what an event tells; False if nothing of it is to be seen."""
        self.tally.take(event)
        return self.draft.take(event)

    @property
    def answer(self) -> Answer | None:
        """The answer, unless the run was stopped before."""
        answer = self.draft.answer
        return answer if answer is not None and answer.route != "stopped" else None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return bool(self.failure) or self.draft.answer is not None


class AnswerSections:
    """The sections of a reply, one below the other; one that is alone has no heading.

    A growing reply shows a section once those before it are over, so that text is only ever added.
    """

    def __init__(self, sections: Sequence[AnswerSection], *, run_id: str, remark: str, hosts: Collection[str]) -> None:
        self._sections = tuple(sections)
        self._run_id = run_id
        self._remark = neutralize(remark, hosts)
        self._hosts = hosts

    def __iter__(self) -> Iterator[AnswerSection]:
        """Go through the sections in their order."""
        return iter(self._sections)

    @property
    def answers(self) -> Sequence[Answer]:
        """The answers that there are."""
        return [section.answer for section in self._sections if section.answer is not None]

    @property
    def records(self) -> Sequence[TurnRecord]:
        """How the answers came about."""
        return [section.tally.record(section.answer) for section in self._sections if section.answer is not None]

    @property
    def is_begun(self) -> bool:
        """Whether there is anything to say."""
        return any(section.is_over for section in self._sections)

    def partial_content(self) -> MessageContent:
        """Show what there is by now."""
        shown: list[str] = []
        for section in self._sections:
            if not section.is_over:
                newest = section.draft.partial_content()
                return replace(
                    newest, text=self._join_texts([*shown, self._under(section, newest.text)]), buttons=self._stop
                )
            shown.append(self._format_final(section))
        return MessageContent(text=self._join_texts(shown), status="Finishing …", buttons=self._stop)

    def final_content(self, freshness: Sequence[str], *, sharing: bool = False) -> MessageContent:
        """Show everything; what is missing says so."""
        below = "; ".join(filter(None, freshness))
        if len(self._sections) == 1:
            content = self._sections[0].draft.final_content(below, sharing=sharing)
            return replace(content, text=self._join_texts([content.text]))
        buttons = make_feedback_buttons(self._run_id, sharing=sharing) if self.answers else ()
        return MessageContent(
            text=self._join_texts(map(self._format_final, self._sections)), footer=below, buttons=buttons
        )

    def _format_final(self, section: AnswerSection) -> str:
        if section.failure:
            return self._under(section, neutralize(section.failure, self._hosts))
        if section.answer is None:
            return self._under(section, UNANSWERED)
        is_waiting = section.answer.route == "paused" and len(self._sections) > 1
        return self._under(section, WAITS if is_waiting else section.draft.final_content().text)

    def _under(self, section: AnswerSection, text: str) -> str:
        heading = f"**{neutralize(section.repository, ())}**" if len(self._sections) > 1 else ""
        return "\n\n".join(filter(None, (heading, text)))

    def _join_texts(self, texts: Iterable[str]) -> str:
        return "\n\n".join(filter(None, (self._remark, *texts)))

    @property
    def _stop(self) -> tuple[Button, ...]:
        return (Button(action="stop", label="Stop", value=self._run_id),)
