"""Worlds in which the contract is tried: people on a platform, and citebot there."""

from __future__ import annotations

import asyncio
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from mimetypes import guess_type
from pathlib import Path
from typing import Self

from agent import Database
from bot.adapters.local.listener import LocalListener
from bot.adapters.local.workspace import DIRECT, LocalPlatform, Person, StoredMessage, Workspace
from bot.clock import Clock
from bot.conversations.assembly import ChatPolicy, open_conversations
from bot.conversations.dispatcher import Conversations
from bot.messages import AttachedFile, ButtonAction, ButtonPress, Capabilities, IncomingMessage, MessageContent, Place
from bot.ports import ChatPlatform, GoalRuns
from bot.storage.database import open_database
from bot.tasks import run_in_background
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.clock import FakeClock
from tests.fakes.discord import FakeDiscord
from tests.fakes.local_answers import LocalAnswerJobs
from tests.fakes.observer import FakeObserver
from tests.fakes.platform import ABLE, FakePlatform
from tests.fakes.slack import FakeSlack
from tests.waiting import expect

HOSTS = ("git.example.com",)
OpenStore = Callable[[Path, Clock], AbstractAsyncContextManager[Database]]


def open_sqlite(path: Path, clock: Clock) -> AbstractAsyncContextManager[Database]:
    """Open the database in a file."""
    return open_database(path, lease_clock=clock.now)


@dataclass
class Life:
    """One process of citebot, from its beginning to its end."""

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    conversations: Conversations | None = None
    answerer: Conversations | None = None  # in a life that is split


class BaseWorld(ABC):
    """Begins, ends and kills citebot on one platform; a subclass knows the platform and its people.

    A world that `is_split` has one process that takes events in, and one that answers.
    """

    name: str  # of the platform
    is_split = False

    def __init__(
        self, path: Path, clock: Clock, *, policy: ChatPolicy | None = None, agent: FakeAnswerer | None = None
    ) -> None:
        self.clock = clock
        self.open_store: OpenStore = open_sqlite
        self.agent = agent or FakeAnswerer()
        self.goals: GoalRuns | None = None
        self.repositories = FakeRepositories()
        self.observer = FakeObserver()
        self.policy = policy or ChatPolicy(hosts=HOSTS)
        self._path = path
        self._lives = count(1)
        self._life = Life()

    @property
    def conversations(self) -> Conversations:
        assert self._life.conversations is not None, "begin first"
        return self._life.conversations

    @property
    def task(self) -> asyncio.Task[None]:
        """The process, as long as it lives."""
        assert self._life.task is not None, "begin first"
        return self._life.task

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Begin, and end in an orderly way."""
        await self.begin()
        try:
            yield self
        finally:
            await self.end()

    async def begin(self) -> None:
        self._life = life = Life()
        life.task = asyncio.create_task(self._live(life, f"life {next(self._lives)}"))
        waiting = asyncio.create_task(life.ready.wait())
        async with expect("citebot has begun"):
            await asyncio.wait({waiting, life.task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if life.task.done():
            life.task.result()

    async def _live(self, life: Life, owner: str) -> None:
        async with AsyncExitStack() as stack:
            if self.is_split:
                jobs, front = LocalAnswerJobs(), replace(self.policy, max_concurrent=0)
                life.answerer = await self._open_process(stack, f"{owner}, answerer", self.policy, jobs)
                await stack.enter_async_context(life.answerer.turns.work_on_jobs())
                life.conversations = await self._open_process(stack, f"{owner}, front", front, jobs)
                await stack.enter_async_context(run_in_background(self._tick()))
            else:
                life.conversations = await self._open_process(stack, owner, self.policy)
            await self._listen(life, stack)

    async def _tick(self) -> None:
        """Let the time pass in which processes hear of each other."""
        while True:
            await asyncio.sleep(0.02)
            await self.pass_time(0.5)

    async def _open_process(
        self, stack: AsyncExitStack, owner: str, policy: ChatPolicy, jobs: LocalAnswerJobs | None = None
    ) -> Conversations:
        platform = await self._open_platform(stack)
        opened = await stack.enter_async_context(
            open_conversations(
                self.agent,
                self.repositories,
                store=self.open_store(self._path, self.clock),
                policy=policy,
                clock=self.clock,
                owner=owner,
                observer=self.observer,
                jobs=jobs,
                goals=self.goals if policy.max_concurrent else None,
                refs=self.repositories.refs,
            )
        )
        await stack.enter_async_context(opened.open())
        await stack.enter_async_context(opened.connect_platform(self.name, platform))
        return opened

    @abstractmethod
    async def _open_platform(self, stack: AsyncExitStack) -> ChatPlatform:
        """Open the platform for as long as the stack is."""

    async def _listen(self, life: Life, stack: AsyncExitStack) -> None:
        """Take in what people do, until the life is to end."""
        life.ready.set()
        await life.ending.wait()

    @abstractmethod
    async def pass_time(self, seconds: float) -> None:
        """Turn the clock on, and let citebot do what it waited for."""

    def leave(self) -> None:
        """Let citebot begin to end."""
        self._life.ending.set()

    async def closed(self) -> None:
        """Wait until citebot has ended, letting the time pass that running answers are given."""
        async with expect("self.task.done()"):
            while not self.task.done():
                await self.pass_time(1)
        self.task.result()

    async def end(self) -> None:
        """End citebot in an orderly way."""
        self.leave()
        await self.closed()

    async def crash(self) -> None:
        """End citebot between two steps: nothing is released, nothing is said any more."""
        processes = filter(None, (self._life.answerer, self.conversations))
        turns = [turn for process in processes for turn in process.turns.list_active()]
        tasks = [turn.task for turn in turns if turn.task is not None]
        for turn in turns:
            turn.reason = "superseded"  # what a dead process does not do: release, settle, reply
        for task in tasks:
            task.cancel()
        if tasks:
            async with expect("the end of the turns under way"):
                await asyncio.wait(tasks)
        await self.end()
        await self.pass_time(60)  # the lease of the dead runs out


class RemoteWorld(BaseWorld):
    """Ann and Bob on the fake of a real platform. `paced` keeps to the platform's limits, which takes time."""

    def __init__(
        self,
        fake: FakeSlack | FakeDiscord,
        path: Path,
        *,
        paced: bool,
        policy: ChatPolicy | None,
        agent: FakeAnswerer | None,
    ) -> None:
        super().__init__(path, fake.clock, policy=policy, agent=agent)
        self.people = {name: fake.add_user(name) for name in ("ann", "bob")}
        fake.limits.enabled = paced
        self._fake_clock = fake.clock

    async def pass_time(self, seconds: float) -> None:
        self._fake_clock.advance(seconds)
        await asyncio.wait({self.task}, timeout=0.01)

    def _to_bob(self, text: str) -> str:
        return f"<@{self.people['bob']}> {text}"


class FakeWorld(BaseWorld):
    """People on the fake platform. The clock stands still except what a test lets pass."""

    name = "fake"

    def __init__(self, path: Path, *, able: Capabilities = ABLE, policy: ChatPolicy | None = None) -> None:
        self.clock: FakeClock
        super().__init__(path, FakeClock(), policy=policy)
        self.platform = FakePlatform(self.clock, able)
        self.written: dict[str, IncomingMessage] = {}
        self._ids = count(1)

    async def _open_platform(self, stack: AsyncExitStack) -> ChatPlatform:
        return self.platform

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        return await self._write(text, author, thread, deliveries, kind="mention")

    async def attach(self, text: str, files: Mapping[str, bytes]) -> str:
        self.platform.files |= {f"fake:{name}": content for name, content in files.items()}
        described = tuple(
            AttachedFile(name=name, media_type=guess_type(name)[0] or "", size=len(content), url=f"fake:{name}")
            for name, content in files.items()
        )
        return await self._write(text, "ann", "", 1, kind="mention", files=described)

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        return await self._write(text, author, thread, 1, kind="follow_up", mentions_others=to_others)

    async def direct(self, text: str, *, author: str = "ann") -> str:
        return await self._write(text, author, "", 1, kind="direct", private=True, channel=f"D-{author}")

    async def command(self, text: str, *, author: str = "ann") -> str:
        return await self._write(text, author, "", 1, kind="command", private=True)

    async def edit(self, message: str, text: str) -> None:
        await self.conversations.handle_edit(replace(self.written[message], text=text))

    async def delete(self, message: str) -> None:
        await self.conversations.handle_deletion(self.written[message].key)

    async def press(self, action: ButtonAction, *, author: str = "ann") -> str:
        newest = list(self.platform.messages.values())[-1].handle
        return await self.conversations.handle_press(ButtonPress(handle=newest, action=action, author=author))

    async def choose(self, label: str, *, author: str = "ann") -> str:
        shown = list(self.platform.messages.values())[-1]
        button = next(each for each in shown.content.buttons if each.label == label)
        press = ButtonPress(handle=shown.handle, action=button.action, author=author, value=button.value)
        return await self.conversations.handle_press(press)

    def said(self) -> list[str]:
        return list_shown([shown.content for shown in self.platform.messages.values()])

    async def _write(
        self, text: str, author: str, thread: str, deliveries: int, *, channel: str = "C", **fields: object
    ) -> str:
        number = str(next(self._ids))
        place = Place(platform="fake", workspace="W", channel=channel, thread=thread or number)
        message = IncomingMessage(
            place=place, id=number, author=author, text=text, sent_at=self.clock.now(), in_thread=bool(thread),
            **fields,  # type: ignore[arg-type]
        )  # fmt: skip
        self.written[number] = message
        await asyncio.gather(*(self.conversations.receive(message) for _ in range(deliveries)))
        return number


class LocalWorld(BaseWorld):
    """People in the workspace of `citebot demo`, who do what its page lets them do; the clock stands still."""

    name = "local"
    people = tuple(Person(id=name, name=name.title(), about="") for name in ("ann", "bob", "eve"))

    def __init__(self, path: Path, *, policy: ChatPolicy | None = None, agent: FakeAnswerer | None = None) -> None:
        self.clock: FakeClock
        super().__init__(path, FakeClock(), policy=policy, agent=agent)
        self._shown: list[StoredMessage] = []

    async def _open_platform(self, stack: AsyncExitStack) -> ChatPlatform:
        opening = Workspace.open(self._path.parent, self.clock, people=self.people)
        self.workspace = await stack.enter_async_context(opening)
        await stack.enter_async_context(run_in_background(self._look()))
        return LocalPlatform(self.workspace)

    async def _look(self) -> None:
        """See what citebot shows after each change."""
        while True:
            changed = self.workspace.watch()
            self._shown = [each for each in await self.workspace.list_all() if each.content is not None]
            await changed.wait()

    @property
    def listener(self) -> LocalListener:
        return LocalListener(self.workspace, self.conversations, self.clock, self.policy.mask)

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        assert deliveries, "here everything is delivered once"
        return await self._write(f"@citebot {text}", author, thread)

    async def attach(self, text: str, files: Mapping[str, bytes]) -> str:
        attached = [(name, guess_type(name)[0] or "", content) for name, content in files.items()]
        return await self._write(f"@citebot {text}", "ann", files=attached)

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        return await self._write(f"@bob {text}" if to_others else text, author, thread)

    async def direct(self, text: str, *, author: str = "ann") -> str:
        return await self._write(text, author, channel=f"{DIRECT}{author}")

    async def command(self, text: str, *, author: str = "ann") -> str:
        return await self._write(f"/citebot {text}", author)

    async def edit(self, message: str, text: str) -> None:
        found = await self.workspace.find(int(message))
        assert found is not None
        await self.listener.edit(self.workspace.people[found.author], found, f"@citebot {text}")

    async def delete(self, message: str) -> None:
        found = await self.workspace.find(int(message))
        assert found is not None
        await self.listener.delete(self.workspace.people[found.author], found)

    async def press(self, action: ButtonAction, *, author: str = "ann") -> str:
        return await self._press(author, action=action)

    async def choose(self, label: str, *, author: str = "ann") -> str:
        return await self._press(author, label=label)

    async def _press(self, author: str, **wanted: str) -> str:
        newest = [each for each in await self.workspace.list_all() if each.content is not None][-1]
        assert newest.content is not None
        buttons = newest.content.buttons
        number = next(n for n, each in enumerate(buttons) if wanted.items() <= dataclasses.asdict(each).items())
        return await self.listener.press(self.workspace.people[author], newest, number)

    def said(self) -> list[str]:
        return list_shown([each.content for each in self._shown if each.content is not None])

    async def _write(
        self,
        text: str,
        author: str,
        thread: str = "",
        *,
        channel: str = "general",
        files: Sequence[tuple[str, str, bytes]] = (),
    ) -> str:
        person = self.workspace.people[author]
        told = await self.listener.write(person, channel, text, thread=int(thread or 0), files=files)
        assert told == ""
        written = [each for each in await self.workspace.list_all() if each.author == author]
        return str(written[-1].id)


def list_shown(contents: Sequence[MessageContent]) -> list[str]:
    """What people read of messages: text, status, the places found, and footer."""
    found = [" ".join(f"{place.name} {place.url}" for place in each.found) for each in contents]
    return [
        "\n".join(filter(None, (each.text, each.status, places, each.footer)))
        for each, places in zip(contents, found, strict=True)
    ]
