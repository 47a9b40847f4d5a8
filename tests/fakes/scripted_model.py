"""A chat model that follows a script: for each task, what it does the first time it is asked, the second, and so on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel, ValidationError

from agent.errors import AnswerEmpty, AnswerMalformed, ModelError, ModelUnavailable
from agent.limits import Budget, TurnLimits
from agent.ports import Emit, GrowingText, TurnModels

Form = TypeVar("Form", bound=BaseModel)
Line = Any  # what to answer, an error to raise, an event to wait for, or a function of the messages that gives one


class ScriptedModel:
    """A `ChatModel` that answers with tools, or by forms alone.

    A task without a line left is one that the provider fails at; `*` stands for all other tasks.

    A line is text, a mapping for a form, a list of tool calls, or a message. `asked` remembers who asked what with
    which tools.
    """

    name = "scripted:model"

    def __init__(self, script: Mapping[str, Sequence[Line]] | None = None, *, calls_tools: bool = True) -> None:
        self.calls_tools = calls_tools
        self._script = {task: list(lines) for task, lines in (script or {}).items()}
        self.asked: list[tuple[str, Sequence[BaseMessage], tuple[str, ...]]] = []

    @property
    def tasks(self) -> list[str]:
        """Who asked, in order."""
        return [task for task, _, _ in self.asked]

    async def generate_structured(self, messages: Sequence[BaseMessage], form: type[Form], *, task: str) -> Form:
        """Fill in the form with the line."""
        line = await self._line(task, messages, ())
        try:
            return line if isinstance(line, form) else form.model_validate(line)
        except ValidationError as error:
            raise AnswerMalformed("The scripted model did not fill in the form.") from error

    async def reply_with_tools(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], *, task: str
    ) -> AIMessage:
        """Say the line, or call the tools in it."""
        line = await self._line(task, messages, tuple(str(tool["name"]) for tool in tools))
        return self._make_message(line if isinstance(line, AIMessage | list) else str(line), AIMessage(""))

    async def stream_with_tools(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        text: GrowingText,
        *,
        task: str,
    ) -> AIMessage:
        """Say the line word by word, or call the tools in it; a tuple is text and then calls, an error or more text."""
        text.begin()
        line = await self._line(task, messages, tuple(str(tool["name"]) for tool in tools))
        parts = line if isinstance(line, tuple) else (line,)
        message = AIMessage("")
        for part in parts:
            if isinstance(part, ModelError):
                raise part
            if isinstance(part, asyncio.Event):
                await part.wait()
            elif isinstance(part, str):
                for word in part.split(" "):
                    text.write(f"{word} ")
            message = self._make_message(part, message)
        if not str(message.text).strip() and not message.tool_calls and not message.invalid_tool_calls:
            raise AnswerEmpty("The scripted model says nothing.")
        return message

    def _make_message(self, line: Line, before: AIMessage) -> AIMessage:
        if isinstance(line, AIMessage):
            return line
        if isinstance(line, list):
            calls = [
                {"name": name, "args": args, "id": f"call-{len(self.asked)}-{number}", "type": "tool_call"}
                for number, (name, args) in enumerate(line)
            ]
            return AIMessage(before.text, tool_calls=calls)
        return AIMessage(f"{before.text}{line}") if isinstance(line, str) else before

    async def _line(self, task: str, messages: Sequence[BaseMessage], tools: tuple[str, ...]) -> Line:
        self.asked.append((task, tuple(messages), tools))
        lines = self._script.get(task) or self._script.get("*") or []
        line = lines.pop(0) if len(lines) > 1 or (lines and not callable(lines[0])) else lines[0] if lines else None
        if callable(line):  # a function continues answering as the last line
            line = line(messages)
        if isinstance(line, asyncio.Event):
            await line.wait()
        if line is None or isinstance(line, asyncio.Event):
            raise ModelUnavailable("The scripted model has nothing to say.")
        if isinstance(line, ModelError):
            raise line
        return line


class ScriptedModels:
    """The source of one scripted model for every turn, without ceilings that matter."""

    def __init__(self, model: ScriptedModel, limits: TurnLimits | None = None) -> None:
        self.model = model
        self.limits = limits

    def budget(self) -> Budget:
        """Return a fresh budget."""
        return Budget(self.limits)

    def make_turn_models(self, budget: Budget, emit: Emit) -> TurnModels:
        """Return the same model for everything."""
        return TurnModels(main=self.model, small=self.model)
