"""A growing goal run as the content of a reply: its iterations, and finally its verdict with the patch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from agent import AgentEvent, Answer, GoalVerdict
from agent.text.escaping import format_code_span
from bot.markdown.formatting import format_cited_place, neutralize, to_one_line
from bot.messages import Attachment, Button, MessageContent
from bot.replies.answer_content import find_chat_link, make_feedback_buttons

MAX_ITERATIONS = 6  # that are shown beside the one in progress
MAX_STEPS = 8  # of the iteration in progress
LONGEST_STEP = 160
LONGEST_REASON = 300
MASKED = "Secrets in the patch are masked, so it may not apply; `citebot goal --patch FILE` writes it unmasked."
_COMMAND_TOOLS = frozenset({"bash_exec", "run_pytest"})  # their commands are shown anyway


@dataclass(kw_only=True)
class _Iteration:
    """The commands and calls of one iteration; `found` is the result of its check."""

    title: str
    steps: list[str] = field(default_factory=list)
    found: str = ""

    def write_line(self) -> str:
        """Write it in one line after its end."""
        count = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        return f"- **{self.title}**: {count}. {self.found}"

    def write_steps(self) -> str:
        """Write its newest steps, one per line."""
        left = len(self.steps) - MAX_STEPS
        earlier = [f"- *{left} earlier step{'s' * (left != 1)}*"] if left > 0 else []
        return "\n".join(
            [f"**{self.title}**", "", *earlier, *(f"- {step}" for step in self.steps[-MAX_STEPS:])]
            + ([f"- {self.found}"] if self.found else [])
        )


class GrowingGoal:
    """The visible state of one goal run, kept up to date by its events; `mask` removes secrets from its patch."""

    def __init__(self, run_id: str, hosts: Collection[str], mask: Callable[[str], str]) -> None:
        self.answer: Answer | None = None
        self.verdict: GoalVerdict | None = None
        self._run_id = run_id
        self._hosts = hosts
        self._mask = mask
        self._status = "Preparing the sandbox"
        self._iterations: list[_Iteration] = []

    def wait(self, before: int) -> None:
        """Show how many goal runs come first."""
        runs = "goal run is" if before == 1 else "goal runs are"
        waiting = f"Waiting: {before} {runs} ahead of this one; `stop` ends the wait"
        self._status = waiting if before else "Preparing the sandbox"

    def take(self, event: AgentEvent) -> bool:
        """Take an event; False if it changes nothing visible."""
        payload = event.payload
        match event.kind:
            case "step_start" if payload["node"] == "plan":
                title, _, stage = to_one_line(str(payload["stage"])).partition(": ")
                self._status = f"{stage[:1].upper()}{stage[1:]}"
                self._iterations.append(_Iteration(title=title))
            case "step_start":
                self._status = to_one_line(str(payload["stage"]))
            case "command":
                self._add_step(format_code_span(f"$ {payload['line']}", longest=LONGEST_STEP))
            case "tool_start" if payload["tool"] not in _COMMAND_TOOLS:
                shown = format_code_span(str(payload["shown"]) or str(payload["tool"]), longest=LONGEST_STEP)
                self._add_step(f"{payload['label']} {shown}")
            case "goal_check":
                self._note_check(str(payload["label"]), str(payload["reason"]))
            case "goal_end":
                self.verdict = payload["verdict"]
            case "answer":
                self.answer = payload["answer"]
            case _:
                return False
        return True

    def partial_content(self) -> MessageContent:
        """Return the progress so far."""
        return MessageContent(
            text=self._write_iterations(),
            status=neutralize(f"{self._status} …", ()),
            buttons=(Button(action="stop", label="Stop", value=self._run_id),),
        )

    def content_at_stop(self, sentence: str) -> MessageContent:
        """Return the work up to an interruption, with the sentence that says so below it."""
        return MessageContent(text="\n\n".join(filter(None, (self._write_iterations(), f"*{sentence}*"))))

    def final_content(self, freshness: str = "") -> MessageContent:
        """Return the verdict with the patch as a file; before there is one, `ValueError`."""
        if self.answer is None:
            raise ValueError("The run has not finished.")
        said = neutralize(self._mask(self.answer.text), self._hosts).rstrip()
        if self.verdict is None:
            return MessageContent(text=said)
        file, remark = self._make_patch(self.verdict)
        places = []
        for citation in self.answer.citations:
            name = neutralize(format_code_span(format_cited_place(citation)), ())
            url = find_chat_link(citation, self._hosts)
            places.append(f"[{name}]({url})" if url else name)
        return MessageContent(
            text="\n\n".join(
                filter(
                    None, (said, f"Code at `{self.answer.commit[:7]}`: {', '.join(places)}" if places else "", remark)
                )
            ),
            footer=freshness,
            buttons=make_feedback_buttons(self._run_id),
            file=file,
        )

    def _add_step(self, step: str) -> None:
        if not self._iterations:
            self._iterations.append(_Iteration(title="Before the first iteration"))
        self._iterations[-1].steps.append(step)

    def _note_check(self, label: str, reason: str) -> None:
        said = to_one_line(reason.partition("\n\n")[0])
        shown = said if len(said) <= LONGEST_REASON else f"{said[: LONGEST_REASON - 1]}…"
        if self._iterations:
            self._iterations[-1].found = f"{label}: {shown}"

    def _write_iterations(self) -> str:
        """Write the present iteration in full, and the previous ones in a line each."""
        if not self._iterations:
            return ""
        *earlier, current = self._iterations
        left = len(earlier) - MAX_ITERATIONS
        more = [f"- *{left} earlier iteration{'s' * (left != 1)}*"] if left > 0 else []
        lines = [*more, *(one.write_line() for one in earlier[-MAX_ITERATIONS:])]
        return neutralize("\n\n".join(filter(None, ("\n".join(lines), current.write_steps()))), self._hosts)

    def _make_patch(self, verdict: GoalVerdict) -> tuple[Attachment | None, str]:
        """Make a file of the patch, and say how to apply it."""
        if not verdict.patch:
            return None, ""
        text = verdict.patch.decode(errors="replace")
        masked = self._mask(text)
        name = f"{verdict.goal}-{verdict.commit[:7]}.patch"
        is_whole = masked.encode("utf-8", "replace") == verdict.patch
        how = f"The patch is for `git apply {name}` at `{verdict.commit[:7]}`." if is_whole else MASKED
        return Attachment(name=name, text=masked, language="diff"), how


def make_goal_proposal(text: str, run_id: str, hosts: Collection[str]) -> MessageContent:
    """Show the proposal of a goal run, with its buttons."""
    return MessageContent(
        text=neutralize(text, hosts),
        buttons=(
            Button(action="approve", label="Approve", value=run_id),
            Button(action="abort", label="Abort", value=run_id),
        ),
    )
