"""An answer while it is written, as the content of a reply: for one repository, or a section for each of several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent import AgentEvent, Answer
from agent.text.citation_markers import find_markers, replace_markers
from bot.markdown.formatting import to_one_line
from bot.markdown.safety import neutralize
from bot.messages import Button, ButtonAction, MessageContent
from bot.replies.citation_links import format_sources, link_marks
from bot.replies.waiting import FoundPlaces, describe_stage
from bot.storage.turn_records import RunStats, TurnRecord

LONGEST_STATUS = 140

SMALL_TALK = "out_of_scope"  # the route of a reply that says nothing of the code, such as to thanks
UNANSWERED = "Not answered in time. Ask about this repository alone, or for something narrower."
WAITS = "This would need a person's approval. Ask about this repository alone."


class StreamingAnswer:
    """What people see of one run, kept up to date by its events."""

    def __init__(self, run_id: str, hosts: Collection[str]) -> None:
        self.answer: Answer | None = None
        self._run_id = run_id
        self._hosts = hosts
        self._status = "Reading the question"
        self._found = FoundPlaces()
        self._text = ""

    def wait(self, before: int) -> None:
        """Show how many questions are answered first."""
        questions = "question is" if before == 1 else "questions are"
        self._status = f"Waiting: {before} {questions} ahead of yours" if before else "Reading the question"

    def take(self, event: AgentEvent) -> bool:
        """Take an event in; False if it changes nothing that people see."""
        payload = event.payload
        match event.kind:
            case "step_start" | "tool_start":
                self._status = _fit_status(describe_stage(event))
            case "evidence":
                self._found.take(event)
            case "token":
                self._text += str(payload["text"])
            case "reset":
                self._text = str(payload["text"])
            case "answer":
                self.answer = payload["answer"]
            case _:
                return False
        return True

    def partial_content(self) -> MessageContent:
        """Return the content as far as it has come."""
        text = neutralize(self._text, self._hosts, growing=True)
        return MessageContent(
            text=text,
            status=f"{self._status} …",
            found=() if text else self._found.make_links(self._hosts),
            buttons=(self._make_button("stop", "Stop"),),
        )

    @property
    def text_so_far(self) -> str:
        """What was written before the run was stopped, without marks: no citation was checked."""
        text = replace_markers(self._text, [""] * len(find_markers(self._text)))
        return neutralize(text, self._hosts).rstrip()

    def final_content(self, freshness: str = "", *, sharing: bool = False) -> MessageContent:
        """Return the answer, its marks linked to their lines; before there is one, `ValueError`."""
        if self.answer is None:
            raise ValueError("The run has not come to its answer.")
        safe = neutralize(self.answer.text, self._hosts).rstrip()
        text, unlinked = link_marks(safe, self.answer.citations, self._hosts)
        return MessageContent(
            text="\n\n".join(filter(None, (text, format_sources(unlinked)))),
            footer=freshness if self.answer.commit and self.answer.route != SMALL_TALK else "",
            buttons=self._make_buttons(self.answer, sharing=sharing),
        )

    def _make_buttons(self, answer: Answer, *, sharing: bool) -> tuple[Button, ...]:
        if answer.route == "paused":
            return self._make_button("approve", "Approve"), self._make_button("abort", "Abort")
        if answer.route in {"failed", "stopped", "blocked", SMALL_TALK}:
            return ()
        return make_feedback_buttons(self._run_id, sharing=sharing)

    def _make_button(self, action: Any, label: str) -> Button:
        return Button(action=action, label=label, value=self._run_id)


def make_feedback_buttons(run_id: str, *, sharing: bool = False) -> tuple[Button, ...]:
    """The buttons below an answer; one that only its asker sees can be shared."""
    labels: dict[ButtonAction, str] = {"good": "Helpful", "bad": "Not helpful"}
    labels |= {"share": "Share"} if sharing else {}
    return tuple(Button(action=action, label=label, value=run_id) for action, label in labels.items())


def _fit_status(text: str) -> str:
    line = neutralize(to_one_line(text), ())
    return line if len(line) <= LONGEST_STATUS else f"{line[: LONGEST_STATUS - 1].replace('`', '')}…"


@dataclass
class AnswerSection:
    """The part of a reply about one repository; `failure` is why there will be no answer."""

    repository: str
    draft: StreamingAnswer
    stats: RunStats = field(default_factory=RunStats)
    failure: str = ""

    def take(self, event: AgentEvent) -> bool:
        """Take an event in; False if it changes nothing that people see."""
        self.stats.take(event)
        return self.draft.take(event)

    @property
    def answer(self) -> Answer | None:
        """The answer, unless the run was stopped before."""
        answer = self.draft.answer
        return answer if answer is not None and answer.route != "stopped" else None

    @property
    def text_so_far(self) -> str:
        """What there is of it by now: the answer, what was written of it, or why there is none."""
        if self.answer is not None:
            return self.draft.final_content().text
        return neutralize(self.failure, ()) or self.draft.text_so_far

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be added."""
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
        """The records of how the answers came about."""
        return [section.stats.record(section.answer) for section in self._sections if section.answer is not None]

    @property
    def is_begun(self) -> bool:
        """Whether there is anything to say."""
        return any(section.is_over for section in self._sections)

    def partial_content(self) -> MessageContent:
        """Return the content as far as it has come."""
        shown: list[str] = []
        for section in self._sections:
            if not section.is_over:
                newest = section.draft.partial_content()
                return replace(
                    newest, text=self._join_texts([*shown, self._add_heading(section, newest.text)]), buttons=self._stop
                )
            shown.append(self._format_final(section))
        return MessageContent(text=self._join_texts(shown), status="Finishing …", buttons=self._stop)

    def final_content(self, freshness: Sequence[str], *, sharing: bool = False) -> MessageContent:
        """Return all sections; one without an answer says why."""
        footer = "; ".join(filter(None, freshness))
        if len(self._sections) == 1:
            content = self._sections[0].draft.final_content(footer, sharing=sharing)
            return replace(content, text=self._join_texts([content.text]))
        buttons = make_feedback_buttons(self._run_id, sharing=sharing) if self.answers else ()
        return MessageContent(
            text=self._join_texts(map(self._format_final, self._sections)), footer=footer, buttons=buttons
        )

    def content_at_stop(self, sentence: str) -> MessageContent:
        """Return what was written before the turn was broken off, with the sentence that says so below it."""
        written = [self._add_heading(section, text) for section in self._sections if (text := section.text_so_far)]
        return MessageContent(text=self._join_texts([*written, f"*{sentence}*"]) if written else sentence)

    def _format_final(self, section: AnswerSection) -> str:
        if section.failure:
            return self._add_heading(section, neutralize(section.failure, self._hosts))
        if section.answer is None:
            return self._add_heading(section, UNANSWERED)
        is_waiting = section.answer.route == "paused" and len(self._sections) > 1
        return self._add_heading(section, WAITS if is_waiting else section.draft.final_content().text)

    def _add_heading(self, section: AnswerSection, text: str) -> str:
        heading = f"**{neutralize(section.repository, ())}**" if len(self._sections) > 1 else ""
        return "\n\n".join(filter(None, (heading, text)))

    def _join_texts(self, texts: Iterable[str]) -> str:
        return "\n\n".join(filter(None, (self._remark, *texts)))

    @property
    def _stop(self) -> tuple[Button, ...]:
        return (Button(action="stop", label="Stop", value=self._run_id),)
