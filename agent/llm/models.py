"""The chat models of citebot, and the one of a turn, with a budget, retries and fallbacks.

It uses no retry library: after a failure, the error decides between the same model and the next
one, an answer already partly shown is not tried again, and no pause outlasts the turn's budget.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from agent.errors import (
    AnswerEmpty,
    AnswerMalformed,
    BudgetExceeded,
    InvalidApiKey,
    ModelError,
    ModelMisconfigured,
    ModelTimeout,
    ModelUnavailable,
    QuotaExceeded,
    UnknownModel,
)
from agent.limits import Budget, TokenUsage, TurnLimits
from agent.llm.chat_model import LangChainChatModel, ModelTimeouts, Spend
from agent.llm.providers import GOOGLE, Sampling, parse_model_spec
from agent.ports import Emit, GrowingText, TurnModels

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from pydantic import BaseModel, SecretStr


Form = TypeVar("Form", bound="BaseModel")
T = TypeVar("T")

# After these the rest of the turn does without the model: it would only wait for the same once more.
_LASTING = (InvalidApiKey, ModelMisconfigured, UnknownModel, QuotaExceeded, ModelUnavailable, ModelTimeout)
_MISREAD = (AnswerEmpty, AnswerMalformed)
_MISREAD_ATTEMPTS = 2  # a model that cannot do it twice will not do it


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Timeouts of an answer and a stream, the number of tries, and the pause between them.

    The pause grows twofold with each try. Whatever this says, the turn's own seconds are never exceeded.
    """

    whole: float = 60.0
    first: float = 30.0
    idle: float = 20.0
    attempts: int = 3
    backoff: float = 0.5


class MeteredModel:
    """A `ChatModel` over a model and the ones that take its place, in order; remembers for a turn which have failed."""

    def __init__(self, chats: Sequence[LangChainChatModel], budget: Budget, emit: Emit, retry: RetryPolicy) -> None:
        self.name = chats[0].name
        self._chats = chats
        self._budget = budget
        self._emit = emit
        self._retry = retry
        self._failed: dict[str, ModelError] = {}

    @property
    def calls_tools(self) -> bool:
        """Whether the first model can call functions, as far as known."""
        return self._chats[0].calls_tools

    async def generate_structured(self, messages: Sequence[BaseMessage], form: type[Form], *, task: str) -> Form:
        """Fill in a form."""
        return await self._ask_until_answered(
            task,
            messages,
            lambda chat, spend: chat.generate_structured(messages, form, self._compute_timeouts(), spend),
        )

    async def reply_with_tools(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], *, task: str
    ) -> AIMessage:
        """Answer with text, tool calls or both."""
        return await self._ask_until_answered(
            task, messages, lambda chat, spend: chat.reply_with_tools(messages, tools, self._compute_timeouts(), spend)
        )

    async def stream_with_tools(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], text: GrowingText, *, task: str
    ) -> AIMessage:
        """Answer as `reply_with_tools`, and write text piece by piece; not tried again once some of it was shown."""

        async def write(chat: LangChainChatModel, spend: Spend) -> AIMessage:
            text.begin()
            return await chat.stream_with_tools(messages, tools, text.write, self._compute_timeouts(), spend)

        return await self._ask_until_answered(task, messages, write, is_final=lambda: text.is_shown)

    async def _ask_until_answered(
        self,
        task: str,
        messages: Sequence[BaseMessage],
        call: Callable[[LangChainChatModel, Spend], Awaitable[T]],
        *,
        is_final: Callable[[], bool] = lambda: False,
    ) -> T:
        attempts = _Attempts(self._chats, self._failed, self._budget, self._retry)
        while True:
            chat = await attempts.next()
            try:
                with self._measure_attempt(chat, task, messages) as (spend, replies):
                    answer = await call(chat, spend)
                    replies.append(answer)
            except ModelError as error:
                attempts.note(chat, error)
                if is_final():
                    self.name = chat.name
                    raise
            else:
                self.name = chat.name
                return answer

    @contextmanager
    def _measure_attempt(
        self, chat: LangChainChatModel, task: str, messages: Sequence[BaseMessage]
    ) -> Iterator[tuple[Spend, list[Any]]]:
        """Publish the cost of an attempt, however it ends; its reply is for the list."""
        began, cost = time.perf_counter(), TokenUsage()
        replies: list[Any] = []
        failure: ModelError | None = None

        def spend(usage: TokenUsage) -> None:
            nonlocal cost
            cost += usage
            self._budget.spend(usage)

        try:
            yield spend, replies
        except ModelError as error:
            failure = error
            raise
        finally:
            self._emit(
                "model_end",
                model=chat.name,
                task=task,
                input_tokens=cost.input_tokens,
                output_tokens=cost.output_tokens,
                cached_tokens=cost.cached_tokens,
                seconds=time.perf_counter() - began,
                error=str(failure or ""),
                error_type=type(failure).__name__ if failure is not None else "",
                messages=messages,
                reply=replies[-1] if replies else None,
            )

    def _compute_timeouts(self) -> ModelTimeouts:
        left = self._budget.seconds_left
        limits = self._retry
        return ModelTimeouts(whole=min(limits.whole, left), first=min(limits.first, left), idle=min(limits.idle, left))


class _Attempts:
    """Chooses the model for the next try at an answer, and its time."""

    def __init__(
        self, chats: Sequence[LangChainChatModel], failed: dict[str, ModelError], budget: Budget, retry: RetryPolicy
    ) -> None:
        self._waiting = [chat for chat in chats if chat.name not in failed]
        self._failed = failed
        self._budget = budget
        self._retry = retry
        self._attempts = 0
        self._last: ModelError | None = next(reversed(failed.values()), None)

    async def next(self) -> LangChainChatModel:
        """Return the model to ask, after a pause if it failed before; raises when none is left."""
        if not self._waiting:
            assert self._last is not None  # noqa: S101  (there is at least one model, and each has failed)
            raise self._last
        if self._attempts:
            pause = self._retry.backoff * 2 ** (self._attempts - 1) * random.uniform(1.0, 1.25)  # noqa: S311
            pause = max(pause, getattr(self._last, "retry_after", 0.0))  # as the provider asks, if there is time
            if pause >= self._budget.seconds_left:
                raise self._last or BudgetExceeded("The time for this question is up.")
            await asyncio.sleep(pause)
        self._budget.begin_call()
        self._attempts += 1
        return self._waiting[0]

    def note(self, chat: LangChainChatModel, error: ModelError) -> None:
        """Record a failure, which decides between the same model again, the next one, and none."""
        self._last = error
        allowed = _MISREAD_ATTEMPTS if isinstance(error, _MISREAD) else self._retry.attempts
        if error.retryable and self._attempts < allowed:
            return
        self._waiting.remove(chat)
        self._attempts = 0
        if isinstance(error, _LASTING):
            self._failed[chat.name] = error


NONE = "none"
DEFAULT_MODEL = f"{GOOGLE}:gemini-flash-latest"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatModels:
    """The open models, each followed by its fallback; empty if there are none."""

    main: tuple[LangChainChatModel, ...] = ()
    small: tuple[LangChainChatModel, ...] = ()
    check: tuple[LangChainChatModel, ...] = ()
    ceilings: TurnLimits = field(default_factory=TurnLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def budget(self) -> Budget:
        """Return the budget of a turn that begins now."""
        return Budget(self.ceilings)

    def make_turn_models(self, budget: Budget, emit: Emit) -> TurnModels:
        """Return the models for the nodes of one turn."""
        if not self.main:
            return TurnModels()
        opened = {
            chats: MeteredModel(chats, budget, emit, self.retry)
            for chats in (self.main, self.small, self.check)
            if chats
        }
        return TurnModels(main=opened[self.main], small=opened[self.small], check=opened.get(self.check))


@asynccontextmanager
async def open_models(
    model: str | None = None,
    *,
    small: str | None = None,
    check: str | None = None,
    fallback: str | None = None,
    google_api_key: SecretStr | None = None,
    google_base_url: str | None = None,
    ollama_host: str = "",
    ceilings: TurnLimits | None = None,
    retry: RetryPolicy | None = None,
    answers: Sampling | None = None,
    forms: Sampling | None = None,
) -> AsyncGenerator[ChatModels]:
    """Open the models named as `provider:model`, and close them at the end.

    `check` reads citations again, by default the small model; `none` switches that off. `answers` and `forms` are
    options of writing; by default the provider's own. Without a name, it is Gemini if there is a key, else none; the
    name `none` means none in any case. An unusable name is a `ModelMisconfigured` error; nothing is imported or sent
    before the first question.
    """
    name = model or (DEFAULT_MODEL if google_api_key is not None else NONE)
    chosen = ChatModels(ceilings=ceilings or TurnLimits(), retry=retry or RetryPolicy())
    if name == NONE:
        yield chosen
        return
    chats: dict[str, LangChainChatModel] = {}
    checking = None if check == NONE else check
    for spec in dict.fromkeys(filter(None, (name, small, checking, fallback))):
        chats[spec] = LangChainChatModel(
            parse_model_spec(
                spec, google_api_key=google_api_key, google_base_url=google_base_url, ollama_host=ollama_host
            ),
            answers=answers,
            forms=forms,
        )
    async with AsyncExitStack() as stack:
        for chat in chats.values():
            stack.push_async_callback(chat.aclose)
        yield ChatModels(
            main=_add_stand_ins(chats, name, fallback),
            small=_add_stand_ins(chats, small or name, fallback),
            check=() if check == NONE else _add_stand_ins(chats, checking or small or name, fallback),
            ceilings=chosen.ceilings,
            retry=chosen.retry,
        )


def _add_stand_ins(chats: dict[str, LangChainChatModel], *specs: str | None) -> tuple[LangChainChatModel, ...]:
    return tuple(chats[spec] for spec in dict.fromkeys(filter(None, specs)))
