"""Carries commands out: the one table for all platforms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bot.access import AccessPolicy
from bot.clock import Clock
from bot.command_line import CommandName, Invocation, help_text
from bot.descriptions import explained, freshness, indexing, refreshed, status_text
from bot.errors import Refused
from bot.messages import IncomingMessage
from bot.ports import Answerer, Repositories
from bot.routing.router import Routing
from bot.threads import Threads
from bot.turn_records import TurnRecords

NOTHING_YET = "I have not answered anything in this conversation yet."


class Stop(Protocol):
    """Ends what is under way in a conversation."""

    async def __call__(self, conversation: str) -> bool:
        """Return whether there was anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A command with the message that it came in."""

    invocation: Invocation
    message: IncomingMessage
    conversation: str
    show: Callable[[str], None]


class Commands:
    """What each command does; all of them return the sentence or list to be shown, or raise `Refused`."""

    def __init__(
        self,
        *,
        repositories: Repositories,
        agent: Answerer,
        threads: Threads,
        records: TurnRecords,
        routing: Routing,
        access: AccessPolicy,
        clock: Clock,
        stop: Stop,
    ) -> None:
        self._repositories = repositories
        self._agent = agent
        self._threads = threads
        self._records = records
        self._routing = routing
        self._access = access
        self._clock = clock
        self._stop = stop
        self._table: Mapping[CommandName, Callable[[Asked], Awaitable[str]]] = {
            "help": self._help,
            "status": self._status,
            "repos": self._repos,
            "use": self._use,
            "reindex": self._reindex,
            "mute": self._mute,
            "unmute": self._unmute,
            "stop": self._stopped,
            "why": self._why,
            "forget": self._forget,
        }

    async def run(
        self, invocation: Invocation, message: IncomingMessage, conversation: str, show: Callable[[str], None]
    ) -> str:
        """Carry a command out and return what is to be said about it; `show` is told how far it has come."""
        self._access.check_place(message)
        return await self._table[invocation.command](
            Asked(invocation=invocation, message=message, conversation=conversation, show=show)
        )

    async def _meant(self, asked: Asked) -> str:
        """The repository named, or the one that is meant here; empty where it may be any."""
        return await self._routing.meant(asked.message, asked.conversation, asked.invocation.repository)

    async def _help(self, asked: Asked) -> str:
        return help_text(several=len(self._access.visible(asked.message, self._repositories.names())) > 1)

    async def _status(self, asked: Asked) -> str:
        name = await self._meant(asked)
        if not name:
            return await self._repos(asked)
        return status_text(await self._repositories.status(name), self._clock.now())

    async def _repos(self, asked: Asked) -> str:
        visible = self._access.visible(asked.message, self._repositories.names())
        lines = [freshness(await self._repositories.status(name), self._clock.now()) for name in visible]
        return "\n".join(f"- {line}" for line in lines) or "There are none that you may ask about here."

    async def _use(self, asked: Asked) -> str:
        name = await self._meant(asked)
        await self._routing.use(asked.message, asked.conversation, name)
        return f"Questions here are about `{name}` from now on."

    async def _reindex(self, asked: Asked) -> str:
        name = await self._meant(asked)
        if not name:
            raise Refused("There are several repositories. Write which one: `reindex NAME`. `repos` lists them.")
        self._access.check_reindex(asked.message, name)
        report = await self._repositories.refresh(
            name, full=asked.invocation.full, progress=lambda progress: asked.show(indexing(name, progress))
        )
        return refreshed(report, name)

    async def _mute(self, asked: Asked) -> str:
        await self._threads.mute(asked.message, muted=True)
        return "From now on I answer only mentions in this thread. `unmute` ends that."

    async def _unmute(self, asked: Asked) -> str:
        await self._threads.mute(asked.message, muted=False)
        return "I will answer in this thread again."

    async def _stopped(self, asked: Asked) -> str:
        return "Stopped." if await self._stop(asked.conversation) else "There is nothing to stop here."

    async def _why(self, asked: Asked) -> str:
        record = await self._records.last(asked.conversation)
        if record is None:
            return NOTHING_YET
        for repository in record.repositories or filter(None, (record.repository,)):
            self._access.check_repository(asked.message, repository)
        return explained(record)

    async def _forget(self, asked: Asked) -> str:
        await self._stop(asked.conversation)
        for conversation in (asked.conversation, *await self._routing.asides(asked.conversation)):
            await self._agent.forget(conversation)
        await self._routing.forget(asked.conversation)
        await self._records.forget(asked.conversation)
        return "I have forgotten this conversation."
