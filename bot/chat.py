"""Opens the conversation core: its database, its policies and whoever answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.access import AccessPolicy
from bot.answering import Desk
from bot.clock import Clock, SystemClock
from bot.commands import Commands
from bot.conversations import Conversations
from bot.database import open_database
from bot.inbox import Inbox
from bot.observing import Observer, Unobserved
from bot.owners import own_name
from bot.ports import Answerer, Repositories
from bot.routing.ledger import Ledger
from bot.routing.router import Routing
from bot.routing.signs import Sign
from bot.threads import Threads
from bot.turn_records import TurnRecords
from bot.usage import Limits, Usage

FILE = "inbox.sqlite"  # in CITEBOT_HOME


@dataclass(frozen=True, kw_only=True)
class ChatPolicy:
    """What the operator decides: who may ask, how much, how many at a time, and which hosts may be linked to.

    `signs` are what stands for the repositories beside their names; `mask` takes secrets out of text.
    """

    hosts: Collection[str] = ()
    access: AccessPolicy = field(default_factory=AccessPolicy)
    limits: Limits = field(default_factory=Limits)
    max_concurrent: int = 8
    deadline: float = 150.0
    signs: Mapping[str, Sign] = field(default_factory=dict)
    mask: Callable[[str], str] = str


@asynccontextmanager
async def open_chat(
    agent: Answerer,
    repositories: Repositories,
    *,
    path: Path,
    policy: ChatPolicy,
    clock: Clock | None = None,
    owner: str = "",
    observer: Observer | None = None,
) -> AsyncIterator[Conversations]:
    """Open the database at a path and the conversations over it; they answer once opened, on what is added to them."""
    clock = clock or SystemClock()
    async with open_database(path) as database:
        inbox = Inbox(database, clock, owner or own_name())
        threads, records = Threads(database, clock), TurnRecords(database, clock)
        usage, ledger = Usage(database, clock, policy.limits), Ledger(database, clock)
        for table in (inbox, threads, records, usage, ledger):
            await table.open()

        async def stop(conversation: str) -> bool:
            return await conversations.stop(conversation)

        routing = Routing(
            repositories=repositories, access=policy.access, threads=threads, ledger=ledger, signs=policy.signs,
            clock=clock,
        )  # fmt: skip
        commands = Commands(
            repositories=repositories, agent=agent, threads=threads, records=records, routing=routing,
            access=policy.access, clock=clock, stop=stop,
        )  # fmt: skip
        desk = Desk(
            agent=agent, repositories=repositories, inbox=inbox, commands=commands, routing=routing, records=records,
            access=policy.access, usage=usage, clock=clock, hosts=frozenset(policy.hosts), deadline=policy.deadline,
            mask=policy.mask, observer=observer or Unobserved(),
        )  # fmt: skip
        conversations = Conversations(desk, threads, max_concurrent=policy.max_concurrent)
        yield conversations
