"""Worlds on the fake Discord: people in a server, and citebot there behind the real discord.py."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from bot.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from bot.adapters.discord.platform import RATES
from bot.conversations.assembly import ChatPolicy
from bot.messages import ButtonAction, SendMethod
from bot.messages import RateLimit as SendRate
from bot.ports import ChatPlatform
from tests.bot.worlds import Life, RemoteWorld
from tests.fakes.answerer import FakeAnswerer
from tests.fakes.discord import FakeDiscord, Seen
from tests.waiting import wait_until

LABELS = {"good": "Helpful", "bad": "Not helpful", "stop": "Stop", "share": "Share", "approve": "Approve"}


class DiscordWorld(RemoteWorld):
    """People in a channel of the fake Discord."""

    name = "discord"

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
        super().__init__(fake, path, paced=paced, policy=policy, agent=agent)
        self.fake = fake
        self.channel = fake.add_channel("general")
        self.discord: DiscordAdapter | None = None
        self.message_content = message_content
        self.servers = servers
        self._listening: asyncio.Task[None] | None = None
        self._rates: dict[SendMethod, SendRate] = dict(RATES) if paced else {}

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
        sessions = len(self.fake.gateway.sessions)
        await super().begin()
        task = self.task
        task.add_done_callback(lambda _: self.fake.changes.tell())
        await self.fake.until(lambda: len(self.fake.gateway.sessions) > sessions or task.done())
        if task.done():
            task.result()
        await wait_until(
            lambda: not (self.discord is None or not self.discord.is_connected),
            "Discord is connected",
        )

    async def _open_platform(self, stack: AsyncExitStack) -> ChatPlatform:
        self.discord = await stack.enter_async_context(DiscordAdapter.open(self.options, self.clock))
        return self.discord.platform

    async def _live(self, life: Life, owner: str) -> None:
        await super()._live(life, owner)
        if self._listening is not None and not self._listening.cancelled():
            self._listening.result()  # why Discord ended the connection

    async def _listen(self, life: Life, stack: AsyncExitStack) -> None:
        assert self.discord is not None
        listening = self._listening = asyncio.create_task(
            self.discord.run(self.conversations, self.repositories, self.policy.access)
        )
        ending = asyncio.create_task(super()._listen(life, stack))
        await asyncio.wait({listening, ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (listening, ending):
            task.cancel()
        await asyncio.wait({listening})

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        message = self.fake.mention(self._find_channel(thread), self.people[author], text)
        created = [each for each in self.fake.gateway.dispatched("MESSAGE_CREATE") if each.data["id"] == message]
        for _ in range(deliveries - 1):
            self.fake.gateway.sessions[-1].dispatch("MESSAGE_CREATE", created[-1].data)
        return message

    async def attach(self, text: str, files: Mapping[str, bytes]) -> str:
        return self.fake.mention(self._find_channel(""), self.people["ann"], text, files=dict(files))

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        text = self._to_bob(text) if to_others else text
        return self.fake.message(self._find_channel(thread), self.people[author], text)

    async def direct(self, text: str, *, author: str = "ann") -> str:
        return self.fake.dm(self.people[author], text)

    async def edit(self, message: str, text: str) -> None:
        direct = self.fake.thread(self.fake.seen(message).channel).guild_id is None
        self.fake.edit(message, text if direct else f"<@{self.fake.bot_id}> {text}")

    async def delete(self, message: str) -> None:
        self.fake.delete(message)

    async def press(self, action: ButtonAction, *, author: str = "ann") -> str:
        return await self._press(LABELS[action], author, silent=action == "stop" and author == "ann")

    async def choose(self, label: str, *, author: str = "ann") -> str:
        return await self._press(label, author, silent=author == "ann")

    async def choose_late(self, label: str, seen: Seen, *, author: str) -> str:
        """Press a button as it was when somebody saw a message that has changed since; return what they are told."""
        pressing = self.fake.press(seen.id, self.people[author], label, components=seen.components)
        await self.fake.until(lambda: pressing.followups)
        return pressing.followups[-1].shown

    async def _press(self, label: str, author: str, *, silent: bool) -> str:
        """Press a button, which the person is told something for unless it is silent."""
        found = await self.fake.until(lambda: [each for each in self.replies() if label in each.buttons])
        pressing = self.fake.press(found[-1].id, self.people[author], label)
        await self.fake.until(lambda: pressing.acknowledged)
        if silent:
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

    def _find_channel(self, thread: str) -> str:
        """The channel, or a thread of it; one that nobody began is begun by Bob."""
        if not thread:
            return self.channel
        if thread not in self.fake.world.channels:
            return self.fake.start_thread(self.channel, self.people["bob"], "talk")
        return thread
