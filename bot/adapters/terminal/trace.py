"""Traces a run in progress, a line per event with its milliseconds: nodes, tools, evidence, models, text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent import AgentEvent, Answer, EventKind, TokenUsage
from bot.markdown import format_location, to_one_line

if TYPE_CHECKING:
    from indexer import Location

MAX_PLACES = 5
LONGEST_VALUE = 300

Payload = Mapping[str, Any]

# The events that are one line, whatever came before.
_LINES: Mapping[EventKind, Callable[[Payload], str]] = {
    "step_start": lambda payload: f"{payload['node']}: {to_one_line(payload['stage'])}",
    "flagged": lambda payload: (
        f"guard: {payload['count']} passages ({payload['source']}) give orders: {', '.join(payload['rules'])}; only "
        "read-only tools are left"
    ),
    "goal_check": lambda payload: f"evidence is graded: {payload['grade']}",
    "iteration_complete": lambda payload: f"iteration is over: {payload['decision']}, {to_one_line(payload['reason'])}",
    "human_check_required": lambda payload: f"a person is asked: {payload['kind']}",
    "error": lambda payload: f"error {payload['error']}: {to_one_line(payload['message'])}",
}


class RunTrace:
    """Writes one or more lines for each event of a run; `verbose` adds the state changes of every node."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False) -> None:
        self._write = write
        self._verbose = verbose
        self._began: float | None = None
        self._step_began = 0.0
        self._tool_began: dict[str, float] = {}
        self._pieces = 0
        self._spent = TokenUsage()
        self._state: dict[str, Any] = {}
        self._formatters: dict[EventKind, Callable[[Payload, float], Iterable[str]]] = {
            "step_end": self._format_step_end,
            "tool_start": self._format_tool_start,
            "tool_end": self._format_tool_end,
            "evidence": self._format_evidence,
            "model_end": self._format_model_end,
            "token": self._format_token,
            "reset": self._reset,
            "answer": self._answer,
        }

    def take(self, event: AgentEvent) -> None:
        """Write the lines of an event."""
        if self._began is None:
            self._began = event.ts
        now = (event.ts - self._began) * 1000
        lines: Iterable[str] = ()
        if event.kind in _LINES:
            lines = (_LINES[event.kind](event.payload),)
        elif event.kind in self._formatters:
            lines = self._formatters[event.kind](event.payload, now)
        for line in lines:
            self._write(f"{now:>7.0f} ms  {line}")

    def _format_step_end(self, payload: Payload, now: float) -> Iterator[str]:
        yield f"{payload['node']} done in {now - self._step_began:.0f} ms"
        if payload["changes"].get("gateway_verdict") == "watch":
            reason = to_one_line(payload["changes"].get("gateway_reason", "the reply"))
            yield f"guard: watched ({reason}), only reading is left"
        self._step_began = now
        if self._verbose:
            yield from self._format_changes(payload["changes"])

    def _format_changes(self, changes: Payload) -> Iterator[str]:
        """List the changes, without values that stay empty."""
        for name, value in changes.items():
            before = self._state.get(name)
            if value != before and (value or before):
                yield f"    {name} = {_shorten_value(value)}"
        self._state.update(changes)

    def _format_tool_start(self, payload: Payload, now: float) -> Iterator[str]:
        self._tool_began[payload["tool"]] = now
        yield f"tool {to_one_line(payload['tool'])} {_shorten_value(payload['args'])}"

    def _format_tool_end(self, payload: Payload, now: float) -> Iterator[str]:
        tool = payload["tool"]
        what = f"{payload['found']} places" if payload["ok"] else "no result"
        yield f"tool {to_one_line(tool)}: {what} in {now - self._tool_began.pop(tool, now):.0f} ms"

    def _format_evidence(self, payload: Payload, _: float) -> Iterator[str]:
        found: list[Location] = payload["locations"]
        shown = [format_location(place.path, place.start_line, place.end_line) for place in found]
        if not self._verbose and len(shown) > MAX_PLACES:
            shown = [*shown[:MAX_PLACES], f"and {len(found) - MAX_PLACES} more"]
        yield f"evidence: {', '.join(shown) or 'none'}"

    def _format_model_end(self, payload: Payload, _: float) -> Iterator[str]:
        usage = TokenUsage(input_tokens=payload["input_tokens"], output_tokens=payload["output_tokens"])
        self._spent += usage
        failure = f", failed: {to_one_line(payload['error'])}" if payload["error"] else ""
        took = f"{payload['seconds'] * 1000:.0f} ms"
        yield f"model {to_one_line(payload['model'])} for {payload['task']}: {_format_usage(usage)}, {took}{failure}"

    def _format_token(self, payload: Payload, _: float) -> Iterator[str]:
        self._pieces += 1
        if self._pieces == 1:
            yield f"text begins: {_shorten_value(payload['text'])}"

    def _reset(self, payload: Payload, _: float) -> Iterator[str]:
        self._pieces = 0
        yield f"text is withdrawn, {len(payload['text'])} characters are left"

    def _answer(self, payload: Payload, _: float) -> Iterator[str]:
        answer: Answer = payload["answer"]
        model = to_one_line(answer.model) if answer.model else "no model"
        yield (
            f"answer: {answer.route}, by {model}, {len(answer.citations)} citations, {len(answer.text):,} characters "
            f"in {self._pieces} pieces; {_format_usage(self._spent)}"
        )


def _format_usage(usage: TokenUsage) -> str:
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"


def _shorten_value(value: object) -> str:
    text = to_one_line(json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
