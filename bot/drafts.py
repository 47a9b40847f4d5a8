"""An answer on its way: what a run has told so far, as the content of a message."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from agent.events import AgentEvent
from agent.ports import Answer, Citation
from bot.markdown.safety import neutralize
from bot.markdown.showing import find_link_target, format_location, to_one_line
from bot.messages import Button, ButtonAction, MessageContent

LONGEST_STATUS = 140


class StreamingAnswer:
    """Takes the events of one run in, and shows what there is to be seen of them at any time."""

    def __init__(self, run_id: str, hosts: Collection[str]) -> None:
        self.answer: Answer | None = None
        self._run_id = run_id
        self._hosts = hosts
        self._status = "Reading the question"
        self._text = ""

    def wait(self, before: int) -> None:
        """Say how many questions are answered first."""
        questions = "question is" if before == 1 else "questions are"
        self._status = f"Waiting: {before} {questions} ahead of yours" if before else "Reading the question"

    def take(self, event: AgentEvent) -> bool:
        """Bring in what an event tells; False if nothing of it is to be seen."""
        taking: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "step_start": self._set_stage,
            "tool_start": self._set_tool,
            "token": self._append_text,
            "reset": self._reset,
            "answer": self._set_answer,
        }
        if event.kind not in taking:
            return False
        taking[event.kind](event.payload)
        return True

    def partial_content(self) -> MessageContent:
        """Show what there is by now."""
        text = neutralize(self._text, self._hosts, growing=True)
        return MessageContent(text=text, status=f"{self._status} …", buttons=(self._button("stop", "Stop"),))

    def final_content(self, freshness: str = "", *, sharing: bool = False) -> MessageContent:
        """Show the answer with its sources; before there is one, `ValueError`."""
        if self.answer is None:
            raise ValueError("The run has not come to its answer.")
        text = neutralize(self.answer.text, self._hosts)
        sources = [format_source(citation, self._hosts) for citation in self.answer.citations]
        return MessageContent(
            text="\n\n".join(filter(None, (text.rstrip(), "\n".join(sources)))),
            footer=freshness if self.answer.commit else "",
            buttons=self._buttons(self.answer, sharing=sharing),
        )

    def _buttons(self, answer: Answer, *, sharing: bool) -> tuple[Button, ...]:
        if answer.route == "paused":
            return self._button("approve", "Approve"), self._button("abort", "Abort")
        if answer.route in {"failed", "stopped", "blocked"}:
            return ()
        return make_feedback_buttons(self._run_id, sharing=sharing)

    def _button(self, action: Any, label: str) -> Button:
        return Button(action=action, label=label, value=self._run_id)

    def _set_stage(self, payload: Mapping[str, Any]) -> None:
        self._status = _status(str(payload["stage"]))

    def _set_tool(self, payload: Mapping[str, Any]) -> None:
        what = to_one_line(str(payload["shown"])).replace("`", "") or str(payload["tool"])
        self._status = _status(f"{payload['label']} `{what[: LONGEST_STATUS - 40]}`")

    def _append_text(self, payload: Mapping[str, Any]) -> None:
        self._text += str(payload["text"])

    def _reset(self, payload: Mapping[str, Any]) -> None:
        self._text = str(payload["text"])

    def _set_answer(self, payload: Mapping[str, Any]) -> None:
        self.answer = payload["answer"]


def make_feedback_buttons(run_id: str, *, sharing: bool = False) -> tuple[Button, ...]:
    """The buttons below an answer; one that only its asker sees can be shared."""
    labels: dict[ButtonAction, str] = {"good": "Helpful", "bad": "Not helpful"}
    labels |= {"share": "Share"} if sharing else {}
    return tuple(Button(action=action, label=label, value=run_id) for action, label in labels.items())


def format_source(citation: Citation, hosts: Collection[str]) -> str:
    """One line for a citation: its mark, and its lines as a link where its host is allowed."""
    where = format_location(citation.path, citation.start_line, citation.end_line).replace("`", "'")
    target = find_link_target(citation, None)
    linked = neutralize(f"[`{where}`]({target})", hosts) if target else f"`{where}`"
    return f"[{citation.mark}] {linked}"


def _status(text: str) -> str:
    line = neutralize(to_one_line(text), ())
    return line if len(line) <= LONGEST_STATUS else f"{line[: LONGEST_STATUS - 1].replace('`', '')}…"
