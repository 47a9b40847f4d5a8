"""Carries commands out: the one table for all platforms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bot.access import AccessPolicy
from bot.clock import Clock
from bot.command_line import CommandName, ParsedCommand, format_help
from bot.descriptions import describe_freshness, describe_progress, describe_refresh, describe_status, explain_answer
from bot.errors import NotAllowed
from bot.messages import IncomingMessage
from bot.ports import Answerer, Repositories
from bot.routing.router import RepositoryChooser
from bot.threads import ThreadStore
from bot.turn_records import TurnRecordStore

NOTHING_YET = "I have not answered anything in this conversation yet."


class StopAnswer(Protocol):
    """Ends what is under way in a conversation."""

    async def __call__(self, conversation: str) -> bool:
        """Return whether there was anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRequest:
    """A command with the message that it came in."""

    invocation: ParsedCommand
    message: IncomingMessage
    conversation: str
    show: Callable[[str], None]


class CommandHandlers:
    """What each command does; all of them return the sentence or list to be shown, or raise `NotAllowed`."""

    def __init__(
        self,
        *,
        repositories: Repositories,
        agent: Answerer,
        threads: ThreadStore,
        records: TurnRecordStore,
        routing: RepositoryChooser,
        access: AccessPolicy,
        clock: Clock,
        stop: StopAnswer,
    ) -> None:
        self._repositories = repositories
        self._agent = agent
        self._threads = threads
        self._records = records
        self._routing = routing
        self._access = access
        self._clock = clock
        self._stop = stop
        self._table: Mapping[CommandName, Callable[[CommandRequest], Awaitable[str]]] = {
            "help": self._help,
            "status": self._status,
            "repos": self._repos,
            "use": self._use,
            "reindex": self._reindex,
            "mute": self._mute,
            "unmute": self._unmute,
            "stop": self._handle_stop,
            "why": self._why,
            "forget": self._forget,
        }

    async def run(
        self, invocation: ParsedCommand, message: IncomingMessage, conversation: str, show: Callable[[str], None]
    ) -> str:
        """Carry a command out and return what is to be said about it; `show` is told how far it has come."""
        self._access.check_place(message)
        return await self._table[invocation.command](
            CommandRequest(invocation=invocation, message=message, conversation=conversation, show=show)
        )

    async def _find_repository(self, asked: CommandRequest) -> str:
        """The repository named, or the one that is meant here; empty where it may be any."""
        return await self._routing.find_meant(asked.message, asked.conversation, asked.invocation.repository)

    async def _help(self, asked: CommandRequest) -> str:
        return format_help(several=len(self._access.visible(asked.message, self._repositories.list_names())) > 1)

    async def _status(self, asked: CommandRequest) -> str:
        name = await self._find_repository(asked)
        if not name:
            return await self._repos(asked)
        return describe_status(await self._repositories.status(name), self._clock.now())

    async def _repos(self, asked: CommandRequest) -> str:
        visible = self._access.visible(asked.message, self._repositories.list_names())
        lines = [describe_freshness(await self._repositories.status(name), self._clock.now()) for name in visible]
        return "\n".join(f"- {line}" for line in lines) or "There are none that you may ask about here."

    async def _use(self, asked: CommandRequest) -> str:
        name = await self._find_repository(asked)
        await self._routing.use(asked.message, asked.conversation, name)
        return f"Questions here are about `{name}` from now on."

    async def _reindex(self, asked: CommandRequest) -> str:
        name = await self._find_repository(asked)
        if not name:
            raise NotAllowed("There are several repositories. Write which one: `reindex NAME`. `repos` lists them.")
        self._access.check_reindex(asked.message, name)
        report = await self._repositories.refresh(
            name, full=asked.invocation.full, progress=lambda progress: asked.show(describe_progress(name, progress))
        )
        return describe_refresh(report, name)

    async def _mute(self, asked: CommandRequest) -> str:
        await self._threads.mute(asked.message, muted=True)
        return "From now on I answer only mentions in this thread. `unmute` ends that."

    async def _unmute(self, asked: CommandRequest) -> str:
        await self._threads.mute(asked.message, muted=False)
        return "I will answer in this thread again."

    async def _handle_stop(self, asked: CommandRequest) -> str:
        return "Stopped." if await self._stop(asked.conversation) else "There is nothing to stop here."

    async def _why(self, asked: CommandRequest) -> str:
        record = await self._records.last(asked.conversation)
        if record is None:
            return NOTHING_YET
        for repository in record.repositories or filter(None, (record.repository,)):
            self._access.check_repository(asked.message, repository)
        return explain_answer(record)

    async def _forget(self, asked: CommandRequest) -> str:
        await self._stop(asked.conversation)
        for conversation in (asked.conversation, *await self._routing.asides(asked.conversation)):
            await self._agent.forget(conversation)
        await self._routing.forget(asked.conversation)
        await self._records.forget(asked.conversation)
        return "I have forgotten this conversation."
