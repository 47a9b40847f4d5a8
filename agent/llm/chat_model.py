"""One LangChain chat model: asked within a time limit, its failures mapped to our errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent.errors import (
    AnswerCutEarly,
    AnswerEmpty,
    AnswerMalformed,
    AnswerTruncated,
    InvalidApiKey,
    ModelError,
    ModelTimeout,
    ToolsUnsupported,
)
from agent.limits import TokenUsage
from agent.llm.providers import ModelSpec, Sampling, find_bad_ending, is_truncated, map_provider_error
from agent.ports import ChatModel
from agent.text.code_marks import strip_fence

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.runnables import Runnable, RunnableSequence
    from pydantic import BaseModel


Form = TypeVar("Form", bound="BaseModel")
T = TypeVar("T")
Spend = Callable[[TokenUsage], None]

CLOSING_SECONDS = 5.0
LONGEST_REPLY = 400_000  # characters of a stream; models end by themselves long before
LONGEST_CALLS = 20_000  # characters of the arguments of a reply's calls
_MIN_CONTEXT, _MAX_CONTEXT = 8_192, 131_072  # tokens
_MIN_CHARS_PER_TOKEN, _TOKENS_BESIDE = 3, 6_000  # code has short tokens; tools and the answer need room as well
_CHARS_PER_TOKEN = 4  # for answers that break off before their usage is reported

log = logging.getLogger(__name__)

_REQUEST = "Answer with the single word: ready"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelTimeouts:
    """The seconds for a whole answer, and for silence of a stream before and within it."""

    whole: float
    first: float
    idle: float


class LangChainChatModel:
    """A model that is built at its first call, in a thread, because that takes a second.

    It is built once for answers and once for forms, if their settings differ. `calls_tools` says
    whether it can call functions, as far as is known: until it refuses.
    """

    def __init__(self, spec: ModelSpec, *, answers: Sampling | None = None, forms: Sampling | None = None) -> None:
        self.name = spec.spec
        self.calls_tools = True
        self._spec = spec
        self._answers = answers or Sampling()
        self._form_sampling = forms or self._answers
        self._building = asyncio.Lock()
        self._context = _MIN_CONTEXT
        self._built: dict[Sampling, BaseChatModel] = {}
        self._forms: dict[type[BaseModel], Runnable[Any, Any]] = {}  # 20 ms each to make

    async def _iter_chunks(
        self, model: Runnable[Any, Any], messages: Sequence[BaseMessage], timeouts: ModelTimeouts, meter: _Meter
    ) -> AsyncGenerator[tuple[AIMessageChunk, str], None]:
        """Yield the chunks of a stream with their text, within the time limits."""
        with self._map_errors():
            chunks = model.astream(list(messages))
        end = asyncio.get_running_loop().time() + timeouts.whole
        async with aclosing(chunks):  # type: ignore[type-var]  # an async generator, though typed as an iterator
            wait = timeouts.first
            while True:
                left = max(0.0, end - asyncio.get_running_loop().time())
                if (chunk := await self._run_within(anext(chunks, None), min(wait, left))) is None:
                    return
                if meter.written > LONGEST_REPLY:
                    raise AnswerTruncated(f"The language model {self.name} kept writing past the limit.")
                piece = _make_chunk(chunk)
                if text := meter.take(piece):
                    wait = timeouts.idle
                yield piece, text

    async def generate_structured(
        self, messages: Sequence[BaseMessage], form: type[Form], timeouts: ModelTimeouts, spend: Spend
    ) -> Form:
        """Fill in a form."""
        with self._map_errors():
            model = await self._bind_form(form)
        self._widen_context(messages)
        raw = (await self._run_within(model.ainvoke(list(messages)), timeouts.whole))["raw"]
        spend(_count_tokens(raw, messages))
        self._judge(raw.response_metadata, is_empty=not str(raw.text).strip() and not raw.tool_calls)
        try:
            if raw.tool_calls:
                return form.model_validate(raw.tool_calls[0]["args"])
            return form.model_validate_json(strip_fence(str(raw.text).strip()))
        except ValueError as error:  # ValidationError is one
            message = f"The language model {self.name} did not fill in the form {form.__name__}."
            raise AnswerMalformed(message) from error

    async def reply_with_tools(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], timeouts: ModelTimeouts, spend: Spend
    ) -> AIMessage:
        """Answer with text, tool calls or both."""
        bound = await self._bind_tools(tools)
        self._widen_context(messages)
        reply: AIMessage = await self._ask_bound(self._run_within(bound.ainvoke(list(messages)), timeouts.whole))
        spend(_count_tokens(reply, messages))
        self._judge_reply(reply)
        return reply

    async def stream_with_tools(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        write: Callable[[str], None],
        timeouts: ModelTimeouts,
        spend: Spend,
    ) -> AIMessage:
        """Answer as `reply_with_tools`; text is written piece by piece, `AnswerTruncated` if it ends too early."""
        bound = await self._bind_tools(tools)
        self._widen_context(messages)
        meter, parts = _Meter(messages), []
        try:
            async with aclosing(self._iter_chunks(bound, messages, timeouts, meter)) as chunks:
                while (each := await self._ask_bound(anext(chunks, None))) is not None:
                    parts.append(each[0])
                    if meter.called > LONGEST_CALLS:
                        raise AnswerMalformed(f"The language model {self.name} wrote a tool call past the limit.")
                    if each[1]:
                        write(each[1])
        finally:
            spend(meter.usage)
        reply = _join_chunks(parts)
        self._judge_reply(reply)
        if not reply.tool_calls:
            self._judge_length(meter.metadata)
        return reply

    async def aclose(self) -> None:
        """Close the connections of a model that was built."""
        for close in filter(None, (getattr(built, "aclose", None) for built in self._built.values())):
            try:
                await asyncio.wait_for(close(), CLOSING_SECONDS)
            except (OSError, RuntimeError, TimeoutError) as error:
                log.warning("the connections to %s were not closed: %s", self.name, type(error).__name__)

    async def _get_model(self, sampling: Sampling | None = None) -> BaseChatModel:
        """Return the model with its usual settings, or with those wanted."""
        wanted = sampling or self._answers
        async with self._building:
            if wanted not in self._built:
                self._built[wanted] = await asyncio.to_thread(self._spec.build, wanted)
            return self._built[wanted]

    async def _bind_tools(self, tools: Sequence[Mapping[str, Any]]) -> Runnable[Any, Any]:
        with self._map_errors():
            model = await self._get_model()
        try:
            with self._map_errors():
                return model.bind_tools([dict(tool) for tool in tools]) if tools else model
        except ModelError as error:
            if isinstance(error.__cause__, NotImplementedError):  # the error of LangChain's base class
                self.calls_tools = False
                raise ToolsUnsupported(f"The language model {self.name} cannot call functions.") from error
            raise

    def _widen_context(self, messages: Sequence[BaseMessage]) -> None:
        """Raise the context length of a server that would cut off the beginning of the prompt.

        The length doubles and never shrinks: each change makes the server load the model again.
        """
        if option := self._spec.provider.context_option:
            needed = sum(len(str(message.content)) for message in messages) // _MIN_CHARS_PER_TOKEN + _TOKENS_BESIDE
            while self._context < min(needed, _MAX_CONTEXT):
                self._context *= 2
            for model in self._built.values():
                setattr(model, option, self._context)

    async def _ask_bound(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except ToolsUnsupported:
            self.calls_tools = False
            raise

    async def _bind_form(self, form: type[BaseModel]) -> Runnable[Any, Any]:
        if form not in self._forms:
            model = await self._get_model(self._form_sampling)
            bound = model.with_structured_output(form, include_raw=True)
            # Only the first step, the model's: LangChain's parser takes quadratic time over what is not JSON.
            self._forms[form] = cast("RunnableSequence[Any, Any]", bound).first
        return self._forms[form]

    async def _run_within(self, call: Awaitable[T], seconds: float) -> T:
        with self._map_errors():
            async with asyncio.timeout(seconds):
                return await call

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        try:
            yield
        except ModelError:
            raise
        except TimeoutError as error:
            raise ModelTimeout(f"The language model {self.name} did not answer in time.") from error
        except Exception as error:  # noqa: BLE001  (the packages share no base class for a call that fails)
            ours = map_provider_error(error, self.name, self._spec.provider.key_variable)
            # Some services repeat the key in their refusal, so that one is not chained.
            raise ours from (None if isinstance(ours, InvalidApiKey) else error)

    def _judge_reply(self, reply: AIMessage) -> None:
        has_calls = reply.tool_calls or reply.invalid_tool_calls
        self._judge(reply.response_metadata, is_empty=not str(reply.text).strip() and not has_calls)

    def _judge_length(self, metadata: dict[str, Any]) -> None:
        if is_truncated(metadata):
            raise AnswerTruncated(f"The language model {self.name} reached its limit of length.")

    def _judge(self, metadata: dict[str, Any], *, is_empty: bool) -> None:
        if (failure := find_bad_ending(metadata, self.name)) is not None:
            raise failure
        if is_empty and is_truncated(metadata):
            raise AnswerCutEarly(
                f"The language model {self.name} reached its limit of length before it wrote anything."
            )
        if is_empty:
            raise AnswerEmpty(f"The language model {self.name} gave an empty answer.")


class _Meter:
    """Measures a stream: how it ended, and its cost."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self.metadata: dict[str, Any] = {}
        self.has_text = False
        self.called = 0  # characters of arguments
        self._asked = sum(len(str(message.text)) for message in messages)
        self.written = 0
        self._reported = TokenUsage()
        self._has_begun = False

    def take(self, chunk: AIMessageChunk) -> str:
        """Count a chunk and return its text, without the blanks before the first word."""
        self._has_begun = True
        self.metadata.update({key: value for key, value in chunk.response_metadata.items() if value})
        if usage := chunk.usage_metadata:  # the new part of this chunk
            self._reported += _read_usage(usage)
        text = str(chunk.text)
        self.has_text = self.has_text or bool(text.strip())
        self.written += len(text)
        self.called += sum(len(call["args"] or "") for call in chunk.tool_call_chunks)
        return text if self.has_text else ""

    @property
    def usage(self) -> TokenUsage:
        """Return the provider's figures, else an estimate; nothing if it refused to answer."""
        if self._reported.total or not self._has_begun:
            return self._reported
        return _estimate(self._asked, self.written + self.called)


def _make_chunk(message: AIMessage) -> AIMessageChunk:
    """Return a chunk unchanged, or the whole message of a model that cannot stream as one."""
    from langchain_core.messages import AIMessageChunk

    if isinstance(message, AIMessageChunk):
        return message
    return AIMessageChunk(**message.model_dump(exclude={"type"}))


def _join_chunks(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """Make one message of a stream, signatures and all."""
    from langchain_core.messages import AIMessage, message_chunk_to_message
    from langchain_core.messages.ai import add_ai_message_chunks

    if not chunks:
        return AIMessage("")
    return cast("AIMessage", message_chunk_to_message(add_ai_message_chunks(chunks[0], *chunks[1:])))


def _count_tokens(reply: AIMessage, messages: Sequence[BaseMessage]) -> TokenUsage:
    if usage := reply.usage_metadata:
        return _read_usage(usage)
    return _estimate(sum(len(str(message.text)) for message in messages), len(str(reply.text)))


def _read_usage(usage: UsageMetadata) -> TokenUsage:
    return TokenUsage(
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cached_tokens=usage.get("input_token_details", {}).get("cache_read") or 0,
    )


def _estimate(asked: int, written: int) -> TokenUsage:
    return TokenUsage(input_tokens=asked // _CHARS_PER_TOKEN, output_tokens=written // _CHARS_PER_TOKEN)


async def ping_model(model: ChatModel) -> None:
    """Wait for a one-word answer; raises `ModelError` if there is none."""
    from langchain_core.messages import HumanMessage

    await model.reply_with_tools([HumanMessage(_REQUEST)], [], task="doctor")
