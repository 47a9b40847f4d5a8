"""The run that answers a turn, followed to its answer; after a restart it continues where it was."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from agent import AgentEvent, Attachments, RunPermit, UnknownRun
from bot.ports import Answerer
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.turn_records import KeptTurn, TurnRecordStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRun:
    """The run of a turn: its id, and the question with what came with it, its conversation and its repositories.

    A repository that is read at another commit than its newest is named with that.
    """

    id: str
    conversation: str
    repositories: tuple[str, ...]
    question: str
    attachments: Attachments


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedMessage:
    """A message that this process has claimed in the inbox, as the run that answers it asks for it."""

    inbox: Inbox
    entry: InboxEntry

    async def may_begin(self) -> bool:
        """Note that the run begins; False if the message was edited, or taken by another process, meanwhile."""
        return await self.inbox.begin_run(self.entry)

    async def may_be_replied_to(self, run_id: str) -> bool:
        """Whether the message of another run was neither edited nor deleted."""
        return await self.inbox.is_current(self.entry.conversation, run_id)


async def find_waiting_turn(records: TurnRecordStore, inbox: Inbox, conversation: str) -> KeptTurn | None:
    """Return the newest turn of a conversation if it waits for a person, and its question still stands."""
    for last in await records.list_newest(conversation, most=1):
        if last.record.route == "paused" and await inbox.is_current(conversation, last.run_id):
            return last
    return None


OpenEvents = Callable[[], AsyncIterator[AgentEvent]]


async def follow_run(
    agent: Answerer, run: TurnRun, take: Callable[[AgentEvent], None], *, was_begun: bool, permit: RunPermit
) -> None:
    """Follow a run to its end, and pass on what happens in it."""
    await follow_events(
        resume=lambda: agent.resume(run.id, thread=run.conversation, permit=permit),
        begin=lambda: agent.ask(
            run.question, thread=run.conversation, repositories=run.repositories, run_id=run.id,
            attachments=run.attachments, permit=permit,
        ),
        take=take,
        was_begun=was_begun,
    )  # fmt: skip


async def follow_events(
    *, resume: OpenEvents, begin: OpenEvents, take: Callable[[AgentEvent], None], was_begun: bool
) -> None:
    """Follow a run that an earlier process left, or, where it had not begun, one that begins now."""
    async with aclosing(_stream_events(resume, begin, was_begun=was_begun)) as events:
        async for event in events:
            take(event)


async def _stream_events(resume: OpenEvents, begin: OpenEvents, *, was_begun: bool) -> AsyncGenerator[AgentEvent, None]:
    if was_begun:
        try:
            async for event in resume():
                yield event
        except UnknownRun:
            log.info("nothing was saved of the run of a message")
        else:
            return
    async for event in begin():
        yield event
