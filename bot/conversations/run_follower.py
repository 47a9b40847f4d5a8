"""The run that answers a turn, followed to its answer; after a restart it goes on where it was."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from agent import AgentEvent, UnknownRun
from bot.ports import Answerer

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRun:
    """The run of a turn: its id, and the question with its conversation and its repositories."""

    id: str
    conversation: str
    repositories: tuple[str, ...]
    question: str


async def follow_run(agent: Answerer, run: TurnRun, take: Callable[[AgentEvent], None], *, recovered: bool) -> None:
    """Follow a run to its end, and pass on what happens in it."""
    async with aclosing(_stream_events(agent, run, recovered=recovered)) as events:
        async for event in events:
            take(event)


async def _stream_events(agent: Answerer, run: TurnRun, *, recovered: bool) -> AsyncGenerator[AgentEvent, None]:
    """Take the run up again where an earlier process left it; where it had not begun, begin it."""
    if recovered:
        try:
            async for event in agent.resume(run.id):
                yield event
        except UnknownRun:
            log.info("the run of a message had not begun")
        else:
            return
    events = agent.ask(run.question, thread=run.conversation, repositories=run.repositories, run_id=run.id)
    async for event in events:
        yield event
