"""Worlds in which the contract is tried: people on a platform, and citebot there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

from bot.conversations.composition import ChatPolicy, open_conversations
from bot.conversations.dispatcher import Conversations
from bot.messages import ButtonAction, ButtonPress, Capabilities, IncomingMessage, Place
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.clock import FakeClock
from tests.fakes.observer import FakeObserver
from tests.fakes.platform import ABLE, FakePlatform

HOSTS = ("git.example.com",)


class FakeWorld:
    """People on the fake platform. The clock stands still but for what a test lets pass."""

    def __init__(self, path: Path, *, able: Capabilities = ABLE, policy: ChatPolicy | None = None) -> None:
        self.clock = FakeClock()
        self.platform = FakePlatform(self.clock, able)
        self.agent = FakeAnswerer()
        self.repositories = FakeRepositories()
        self.observer = FakeObserver()
        self.policy = policy or ChatPolicy(hosts=HOSTS)
        self.written: dict[str, IncomingMessage] = {}
        self._path = path
        self._ids = count(1)
        self._lives = count(1)
        self._open: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._conversations: Conversations | None = None

    @property
    def conversations(self) -> Conversations:
        assert self._conversations is not None, "begin first"
        return self._conversations

    async def begin(self) -> None:
        ready, self._open = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._live(f"life {next(self._lives)}", ready, self._open))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        waiting.cancel()
        if self._task.done():
            self._task.result()

    async def _live(self, owner: str, ready: asyncio.Event, ending: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            self._conversations = await stack.enter_async_context(
                open_conversations(
                    self.agent, self.repositories,
                    path=self._path, policy=self.policy, clock=self.clock, owner=owner,
                    observer=self.observer,
                )
            )  # fmt: skip
            await stack.enter_async_context(self._conversations.open())
            await stack.enter_async_context(self._conversations.connect_platform("fake", self.platform))
            ready.set()
            await ending.wait()

    def leave(self) -> None:
        """Let citebot begin to end."""
        assert self._open is not None
        self._open.set()

    async def end(self) -> None:
        self.leave()
        await self.closed()

    async def closed(self) -> None:
        """Wait until citebot has ended, letting time pass."""
        assert self._task is not None
        async with asyncio.timeout(5):
            while not self._task.done():
                await self.clock.advance(1)

    async def crash(self) -> None:
        """End citebot between two steps: nothing is released, nothing is said any more."""
        core = self.conversations
        tasks = [turn.task for turn in core._turns.values() if turn.task is not None]
        for turn in core._turns.values():
            turn.reason = "superseded"  # what a dead process does not do: release, settle, reply
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5)
        await self.end()
        await self.clock.advance(60)  # the lease of the dead runs out

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        return await self._write(text, author, thread, deliveries, kind="mention")

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
        contents = [shown.content for shown in self.platform.messages.values()]
        return ["\n".join(filter(None, (each.text, each.status, each.footer))) for each in contents]

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
