"""Records the replies of chat models in a run, and repeats them when the run is derived again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agent import errors
from agent.errors import ModelError, ModelUnavailable
from agent.limits import Budget
from agent.ports import Emit, GrowingText, TurnModels

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from pydantic import BaseModel

Form = TypeVar("Form", bound="BaseModel")
Reply = Mapping[str, Any]

_CHECKING = "check_citations"
_NONCE = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])")  # each conversation has its own


def record_reply(payload: Mapping[str, Any]) -> Reply:
    """Describe one try at a model as a JSON-compatible `model_end` event."""
    reply = payload["reply"]
    said: Mapping[str, Any] = {}
    if hasattr(reply, "tool_calls"):
        said = {"text": reply.text, "calls": reply.tool_calls, "invalid": reply.invalid_tool_calls}
    elif reply is not None:
        said = {"form": reply.model_dump(mode="json")}
    return {
        "task": payload["task"],
        "model": payload["model"],
        "prompt": digest_prompt(payload["messages"]),
        "error": payload["error"],
        "error_type": payload["error_type"],
        **json.loads(json.dumps(said, default=str)),
    }


def digest_prompt(messages: Sequence[BaseMessage]) -> str:
    """Hash a prompt, ignoring the random words that fence its data."""
    shown = [(one.type, str(one.text), [call["args"] for call in getattr(one, "tool_calls", [])]) for one in messages]
    text = _NONCE.sub("", json.dumps(shown, default=str))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class RecordedModels:
    """Chat models that repeat the replies of one run; `has_other_prompts` once a prompt differed."""

    def __init__(self, replies: Sequence[Reply], *, calls_tools: bool) -> None:
        self.name = str(replies[-1]["model"]) if replies else "recorded"
        self.calls_tools = calls_tools
        self.has_other_prompts = False
        self._left = list(replies)
        self._checks = any(one["task"] == _CHECKING for one in replies)

    def budget(self) -> Budget:
        """Return an unspent budget."""
        return Budget()

    def make_turn_models(self, budget: Budget, emit: Emit) -> TurnModels:  # noqa: ARG002 - as every source of models has it
        """Return the models of the one recorded turn."""
        return TurnModels(main=self, small=self, check=self if self._checks else None)

    async def generate_structured(self, messages: Sequence[BaseMessage], form: type[Form], *, task: str) -> Form:
        """Return the recorded form."""
        return form.model_validate(self._take(messages, task).get("form"))

    async def reply_with_tools(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],  # noqa: ARG002 - the calls are recorded
        *,
        task: str,
    ) -> AIMessage:
        """Return the recorded reply."""
        return _make_message(self._take(messages, task))

    async def stream_with_tools(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], text: GrowingText, *, task: str
    ) -> AIMessage:
        """Write the recorded reply, all at once."""
        message = await self.reply_with_tools(messages, tools, task=task)
        text.begin()
        text.write(str(message.text))
        return message

    def _take(self, messages: Sequence[BaseMessage], task: str) -> Reply:
        """Take the next reply of a task, preferring one to the same prompt; raises a recorded final failure."""
        prompt = digest_prompt(messages)
        own = [one for one in self._left if one["task"] == task]
        same = [one for one in own if one["prompt"] == prompt]
        self.has_other_prompts = self.has_other_prompts or not same
        tries = same or own[:1]
        for reply in tries:
            self._left.remove(reply)
            if not reply["error"]:
                self.name = str(reply["model"])
                return reply
        if not tries:
            raise ModelUnavailable(f"No reply of a model to {task!r} was recorded.")
        kind = getattr(errors, str(tries[-1]["error_type"]), ModelUnavailable)
        self.calls_tools = self.calls_tools and kind is not errors.ToolsUnsupported
        raise (kind if issubclass(kind, ModelError) else ModelUnavailable)(str(tries[-1]["error"]))


def _make_message(reply: Reply) -> AIMessage:
    from langchain_core.messages import AIMessage

    return AIMessage(
        str(reply.get("text", "")), tool_calls=reply.get("calls", []), invalid_tool_calls=reply.get("invalid", [])
    )
