"""Opens the conversation core: its database, its policies and the agent that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.access import AccessPolicy, Manners
from bot.clock import Clock, SystemClock
from bot.conversations.commands import CommandHandlers
from bot.conversations.dispatcher import Conversations
from bot.conversations.turn import TurnDeps
from bot.messages import IncomingMessage
from bot.monitoring.observer import ConversationObserver, NullObserver
from bot.ports import Answerer, Repositories
from bot.repositories.choice_store import ChoiceStore
from bot.repositories.chooser import RepositoryChooser
from bot.repositories.names import RepositoryProfile
from bot.storage.database import open_database
from bot.storage.inbox import Inbox, make_process_name
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore


@dataclass(frozen=True, kw_only=True)
class ChatPolicy:
    """What the operator decides: who may ask, how much, how many at a time, and which hosts may be linked to.

    `signs` are the profiles of the repositories by name, `manners` how to behave in channels by their ids; `mask` takes
    secrets out of text.
    """

    hosts: Collection[str] = ()
    access: AccessPolicy = field(default_factory=AccessPolicy)
    limits: QuestionLimits = field(default_factory=QuestionLimits)
    max_concurrent: int = 8
    deadline: float = 150.0
    signs: Mapping[str, RepositoryProfile] = field(default_factory=dict)
    manners: Mapping[str, Manners] = field(default_factory=dict)
    mask: Callable[[str], str] = str


@asynccontextmanager
async def open_conversations(
    agent: Answerer,
    repositories: Repositories,
    *,
    path: Path,
    policy: ChatPolicy,
    clock: Clock | None = None,
    owner: str = "",
    observer: ConversationObserver | None = None,
) -> AsyncIterator[Conversations]:
    """Open the database at a path, and the conversations over it; they answer once they are opened themselves."""
    clock = clock or SystemClock()
    async with open_database(path) as database:
        inbox = Inbox(database, clock, owner or make_process_name())
        threads, records = ThreadStore(database, clock), TurnRecordStore(database, clock)
        counter, choices = QuestionCounter(database, clock, policy.limits), ChoiceStore(database, clock)
        await counter.forget_old()

        async def stop(conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
            return await conversations.stop(conversation, asked_like=asked_like)

        chooser = RepositoryChooser(
            repositories=repositories, access=policy.access, threads=threads, ledger=choices, signs=policy.signs,
            clock=clock,
        )  # fmt: skip
        commands = CommandHandlers(
            repositories=repositories, agent=agent, threads=threads, records=records, chooser=chooser,
            access=policy.access, clock=clock, stop=stop,
        )  # fmt: skip
        deps = TurnDeps(
            agent=agent, repositories=repositories, inbox=inbox, commands=commands, chooser=chooser, records=records,
            access=policy.access, counter=counter, clock=clock, hosts=frozenset(policy.hosts), deadline=policy.deadline,
            mask=policy.mask, observer=observer or NullObserver(),
        )  # fmt: skip
        conversations = Conversations(deps, threads, manners=policy.manners, max_concurrent=policy.max_concurrent)
        yield conversations
