"""Worlds on the fake Discord: people in a server, and citebot there behind the real discord.py."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bot.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from bot.adapters.discord.platform import RATES
from bot.clock import Clock
from bot.conversations.composition import ChatPolicy, open_conversations
from bot.conversations.dispatcher import Conversations
from bot.messages import ButtonAction, SendMethod
from bot.messages import RateLimit as SendRate
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.discord import FakeDiscord, Seen

HOSTS = ("git.example.com",)
LABELS = {"good": "Helpful", "bad": "Not helpful", "stop": "Stop", "share": "Share", "approve": "Approve"}


@dataclass
class Life:
    """One process of citebot, from its beginning to its end."""

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    conversations: Conversations | None = None


class DiscordWorld:
    """People in a channel of the fake Discord. `paced` keeps to Discord's limits, which takes time."""

    def __init__(
        self,
        fake: FakeDiscord,
        path: Path,
        *,
        paced: bool = False,
        policy: ChatPolicy | None = None,
        agent: FakeAnswerer | None = None,
        message_content: bool = True,
        servers: tuple[str, ...] = (),
    ) -> None:
        self.fake = fake
        self.agent = agent or FakeAnswerer()
        self.repositories = FakeRepositories()
        self.policy = policy or ChatPolicy(hosts=HOSTS)
        self.fake.limits.enabled = paced
        self.people = {name: fake.add_user(name) for name in ("ann", "bob")}
        self.channel = fake.add_channel("general")
        self.discord: DiscordAdapter | None = None
        self.message_content = message_content
        self.servers = servers
        self._rates: dict[SendMethod, SendRate] = dict(RATES) if paced else {}
        self._path = path
        self._lives = count(1)
        self._life = Life()

    @property
    def clock(self) -> Clock:
        return self.fake.clock

    @property
    def conversations(self) -> Conversations:
        assert self._life.conversations is not None, "begin first"
        return self._life.conversations

    @property
    def task(self) -> asyncio.Task[None]:
        """The process, as long as it lives."""
        assert self._life.task is not None, "begin first"
        return self._life.task

    @property
    def options(self) -> DiscordOptions:
        return DiscordOptions(
            token=self.fake.token,
            api_url=self.fake.api_url,
            gateway_url=self.fake.gateway_url,
            message_content=self.message_content,
            servers=self.servers,
            mask=lambda text: text.replace("hunter2", "[REDACTED]"),
            settle_seconds=0.01,
            identify_pause=0.0,
            rates=self._rates,
        )

    async def begin(self) -> None:
        self._life = life = Life()
        sessions = len(self.fake.gateway.sessions)
        life.task = asyncio.create_task(self._live(life, f"life {next(self._lives)}"))
        life.task.add_done_callback(lambda _: self.fake.changes.tell())
        task = life.task
        await self.fake.until(lambda: len(self.fake.gateway.sessions) > sessions or task.done())
        if task.done():
            task.result()
        async with asyncio.timeout(5):
            while self.discord is None or not self.discord.is_connected:  # noqa: ASYNC110 - discord.py tells only itself
                await asyncio.sleep(0)

    async def _live(self, life: Life, owner: str) -> None:
        async with AsyncExitStack() as stack:
            discord = self.discord = await stack.enter_async_context(DiscordAdapter.open(self.options, self.clock))
            life.conversations = await stack.enter_async_context(
                open_conversations(
                    self.agent, self.repositories,
                    path=self._path, policy=self.policy, clock=self.clock, owner=owner,
                )
            )  # fmt: skip
            await stack.enter_async_context(life.conversations.open())
            await stack.enter_async_context(life.conversations.connect_platform("discord", discord.platform))
            hearing = asyncio.create_task(discord.run(life.conversations, self.repositories, self.policy.access))
            ending = asyncio.create_task(life.ending.wait())
            await asyncio.wait({hearing, ending}, return_when=asyncio.FIRST_COMPLETED)
            for task in (hearing, ending):
                task.cancel()
            await asyncio.wait({hearing})
        if not hearing.cancelled():
            hearing.result()

    async def end(self) -> None:
        """End in an orderly way, letting the time pass that running answers are given."""
        self._life.ending.set()
        task = self.task
        async with asyncio.timeout(5):
            while not task.done():
                self.fake.clock.advance(1)
                await asyncio.wait({task}, timeout=0.01)
        task.result()

    async def crash(self) -> None:
        """End between two steps: nothing is released, nothing is said any more."""
        turns = self.conversations._turns
        tasks = [turn.task for turn in turns.values() if turn.task is not None]
        for turn in turns.values():
            turn.reason = "superseded"
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5)
        await self.end()
        self.fake.clock.advance(60)

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        message = self.fake.mention(self._room(thread), self.people[author], text)
        created = [each for each in self.fake.gateway.dispatched("MESSAGE_CREATE") if each.data["id"] == message]
        for _ in range(deliveries - 1):
            self.fake.gateway.sessions[-1].dispatch("MESSAGE_CREATE", created[-1].data)
        return message

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        said = f"<@{self.people['bob']}> {text}" if to_others else text
        return self.fake.message(self._room(thread), self.people[author], said)

    async def direct(self, text: str, *, author: str = "ann") -> str:
        return self.fake.dm(self.people[author], text)

    async def edit(self, message: str, text: str) -> None:
        direct = self.fake.thread(self.fake.seen(message).channel).guild_id is None
        self.fake.edit(message, text if direct else f"<@{self.fake.bot_id}> {text}")

    async def delete(self, message: str) -> None:
        self.fake.delete(message)

    async def press(self, action: ButtonAction, *, author: str = "ann") -> str:
        user, label = self.people[author], LABELS[action]
        found = await self.fake.until(lambda: [each for each in self.replies() if label in each.buttons])
        pressing = self.fake.press(found[-1].id, user, label)
        await self.fake.until(lambda: pressing.acknowledged)
        if action == "stop" and author == "ann":
            return ""
        await self.fake.until(lambda: pressing.followups)
        return pressing.followups[-1].shown

    async def choose(self, label: str, *, author: str = "ann") -> str:
        found = await self.fake.until(lambda: [each for each in self.replies() if label in each.buttons])
        pressing = self.fake.press(found[-1].id, self.people[author], label)
        await self.fake.until(lambda: pressing.acknowledged)
        if author == "ann":
            return ""
        await self.fake.until(lambda: pressing.followups)
        return pressing.followups[-1].shown

    def replies(self) -> list[Seen]:
        """What citebot has written anywhere, oldest first."""
        channels = list(self.fake.world.channels)
        return sorted((seen for each in channels for seen in self.fake.answers(each) if seen.kind in {0, 19}),
                      key=lambda seen: int(seen.id))  # fmt: skip

    def said(self) -> list[str]:
        return [seen.text.replace("-# ", "") for seen in self.replies()]

    def _room(self, thread: str) -> str:
        """The channel, or a thread of it; one that nobody began is begun by Bob."""
        if not thread:
            return self.channel
        if thread not in self.fake.world.channels:
            return self.fake.start_thread(self.channel, self.people["bob"], "talk")
        return thread
