"""The chat models that citebot works with: Gemini by default, any LangChain provider by name, or none at all."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.limits import Budget, TurnLimits
from agent.llm.chat_model import LangChainChatModel
from agent.llm.metered_model import MeteredModel, RetryPolicy
from agent.llm.providers import GOOGLE, Sampling, parse_model_spec
from agent.ports import Emit, TurnModels

if TYPE_CHECKING:
    from pydantic import SecretStr

NONE = "none"
DEFAULT_MODEL = f"{GOOGLE}:gemini-flash-latest"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatModels:
    """The models that are open, each followed by what takes its place; empty where there are none."""

    main: tuple[LangChainChatModel, ...] = ()
    small: tuple[LangChainChatModel, ...] = ()
    ceilings: TurnLimits = field(default_factory=TurnLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def budget(self) -> Budget:
        """Return what a turn that begins now may spend."""
        return Budget(self.ceilings)

    def make_turn_models(self, budget: Budget, emit: Emit) -> TurnModels:
        """Return the models as the nodes of one turn see them."""
        if not self.main:
            return TurnModels()
        main = MeteredModel(self.main, budget, emit, self.retry)
        same = self.small == self.main
        return TurnModels(main=main, small=main if same else MeteredModel(self.small, budget, emit, self.retry))


@asynccontextmanager
async def open_models(
    model: str | None = None,
    *,
    small: str | None = None,
    fallback: str | None = None,
    google_api_key: SecretStr | None = None,
    google_base_url: str | None = None,
    ceilings: TurnLimits | None = None,
    retry: RetryPolicy | None = None,
    answers: Sampling | None = None,
    forms: Sampling | None = None,
) -> AsyncGenerator[ChatModels]:
    """Open the models that are named as `provider:model`, and close them at the end.

    `answers` and `forms` say how they write; by default as their providers have chosen.

    Without a name it is Gemini where there is a key, else none; the name `none` means none in any case. A name that
    cannot be used is a `ModelMisconfigured` error; nothing is imported or sent before the first question.
    """
    name = model or (DEFAULT_MODEL if google_api_key is not None else NONE)
    chosen = ChatModels(ceilings=ceilings or TurnLimits(), retry=retry or RetryPolicy())
    if name == NONE:
        yield chosen
        return
    chats: dict[str, LangChainChatModel] = {}
    for spec in dict.fromkeys(filter(None, (name, small, fallback))):
        chats[spec] = LangChainChatModel(
            parse_model_spec(spec, google_api_key=google_api_key, google_base_url=google_base_url),
            answers=answers,
            forms=forms,
        )
    async with AsyncExitStack() as stack:
        for chat in chats.values():
            stack.push_async_callback(chat.aclose)
        yield ChatModels(
            main=_add_stand_ins(chats, name, fallback),
            small=_add_stand_ins(chats, small or name, fallback),
            ceilings=chosen.ceilings,
            retry=chosen.retry,
        )


def _add_stand_ins(chats: dict[str, LangChainChatModel], *specs: str | None) -> tuple[LangChainChatModel, ...]:
    return tuple(chats[spec] for spec in dict.fromkeys(filter(None, specs)))
