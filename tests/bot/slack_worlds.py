"""Worlds on the fake Slack: people in a workspace, and citebot there behind the real Bolt, in either mode."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal

from aiohttp import web

from bot.adapters.slack.adapter import SlackAdapter, SlackOptions
from bot.adapters.slack.platform import RATES, Streaming
from bot.adapters.slack.rendering import PREFIX, RATE
from bot.clock import Clock
from bot.conversations.composition import ChatPolicy, open_conversations
from bot.conversations.dispatcher import Conversations
from bot.messages import ButtonAction, SendMethod
from bot.messages import RateLimit as SendRate
from bot.monitoring.observer import Loss
from bot.serving.http_server import make_application, run_http_server
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.slack import Delivery, FakeSlack, Seen

Mode = Literal["socket", "http"]
HOSTS = ("git.example.com",)


@dataclass
class Life:
    """One process of citebot, from its beginning to its end."""

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    conversations: Conversations | None = None


class SlackWorld:
    """People in a channel of the fake Slack. `paced` keeps to Slack's limits, which takes time."""

    def __init__(
        self,
        fake: FakeSlack,
        path: Path,
        *,
        mode: Mode = "socket",
        streaming: Streaming = "auto",
        paced: bool = False,
        policy: ChatPolicy | None = None,
        agent: FakeAnswerer | None = None,
    ) -> None:
        self.fake = fake
        self.agent = agent or FakeAnswerer()
        self.repositories = FakeRepositories()
        self.policy = policy or ChatPolicy(hosts=HOSTS)
        self.fake.limits.enabled = paced
        self.people = {name: fake.add_user(name) for name in ("ann", "bob")}
        self.channel = fake.add_channel("general", members=tuple(self.people.values()))
        self.slack: SlackAdapter | None = None
        self.address = ""  # where requests come in, in HTTP mode
        self.lost: list[Loss] = []
        self._rates: dict[SendMethod, SendRate] = dict(RATES) if paced else {}
        self._streaming = streaming
        self._mode: Mode = mode
        self._path = path
        self._lives = count(1)
        self._life = Life()
        self._channels: dict[str, str] = {}  # of messages that are in no thread of the channel

    @property
    def clock(self) -> Clock:
        return self.fake.clock

    @property
    def conversations(self) -> Conversations:
        assert self._life.conversations is not None, "begin first"
        return self._life.conversations

    @property
    def options(self) -> SlackOptions:
        return SlackOptions(
            bot_token=self.fake.bot_token,
            app_token=self.fake.app_token,
            signing_secret=self.fake.signing_secret,
            mode=self._mode,
            streaming=self._streaming,
            api_url=self.fake.api_url,
            connections=1,
            ping_interval=0.5,
            rates=self._rates,
        )

    async def begin(self) -> None:
        self._life = life = Life()
        life.task = asyncio.create_task(self._live(life, f"life {next(self._lives)}"))
        waiting = asyncio.create_task(life.ready.wait())
        await asyncio.wait({waiting, life.task}, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        waiting.cancel()
        if life.task.done():
            life.task.result()
        if self._mode == "socket":
            await self.fake.connected()

    async def _live(self, life: Life, owner: str) -> None:
        async with AsyncExitStack() as stack:
            slack = self.slack = await stack.enter_async_context(SlackAdapter.open(self.options, self.clock))
            life.conversations = await stack.enter_async_context(
                open_conversations(
                    self.agent, self.repositories,
                    path=self._path, policy=self.policy, clock=self.clock, owner=owner,
                )
            )  # fmt: skip
            await stack.enter_async_context(life.conversations.open())
            await stack.enter_async_context(life.conversations.connect_platform("slack", slack.platform))
            server = make_application()
            listening = slack.listen(
                life.conversations, self.repositories, self.policy.access, server.router, self.lost.append
            )
            await stack.enter_async_context(listening)
            if self._mode == "http":
                await self._serve(server, stack)
            life.ready.set()
            await life.ending.wait()

    async def _serve(self, server: web.Application, stack: AsyncExitStack) -> None:
        self.address = await stack.enter_async_context(run_http_server(server, host="127.0.0.1", port=0))
        self.fake.serve_http(f"{self.address}/slack/events")

    async def end(self) -> None:
        """End in an orderly way, letting the time pass that running answers are given."""
        self._life.ending.set()
        task = self._life.task
        assert task is not None
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
        ts = await self.fake.mention(self.channel, self.people[author], text, thread or None)
        for delivery in self._about(ts):
            for _ in range(deliveries - 1):
                await self.fake.deliveries.resend(delivery)
        return ts

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        said = f"<@{self.people['bob']}> {text}" if to_others else text
        return await self.fake.message(self.channel, self.people[author], said, thread)

    async def direct(self, text: str, *, author: str = "ann") -> str:
        ts = await self.fake.dm(self.people[author], text)
        self._channels[ts] = self.fake.dm_channel(self.people[author])
        return ts

    async def edit(self, message: str, text: str) -> None:
        mine = "" if message in self._channels else f"<@{self.fake.bot_user}> "
        await self.fake.edit(self._channels.get(message, self.channel), message, mine + text)

    async def delete(self, message: str) -> None:
        await self.fake.delete(self._channels.get(message, self.channel), message)

    async def press(self, action: ButtonAction, *, author: str = "ann") -> str:
        user, told = self.people[author], len(self.fake.ephemeral(self.channel, self.people[author]))
        await self._press(action, user)
        await self.fake.delivered()
        if action == "stop" and author == "ann":
            return ""
        await self.fake.until(lambda: len(self.fake.ephemeral(self.channel, user)) > told)
        return self.fake.ephemeral(self.channel, user)[-1].text

    async def choose(self, label: str, *, author: str = "ann") -> str:
        user, told = self.people[author], len(self.fake.ephemeral(self.channel, self.people[author]))
        newest = await self.fake.until(lambda: [each for each in self.replies() if _named(each, label)])
        await self.fake.press(self.channel, newest[-1].ts, _named(newest[-1], label), user=user)
        if author == "ann":
            return ""
        await self.fake.until(lambda: len(self.fake.ephemeral(self.channel, user)) > told)
        return self.fake.ephemeral(self.channel, user)[-1].text

    async def _press(self, action: ButtonAction, user: str) -> None:
        """Use a button; a stream has Slack's own for stopping, and the reaction."""
        name = RATE if action in {"good", "bad"} else f"{PREFIX}{action}"
        newest = await self.fake.until(
            lambda: [each for each in self.replies() if name in each.buttons or each.streaming]
        )
        seen = newest[-1]
        if seen.streaming and user == self.people["ann"]:
            await self.fake.stop_session(self.channel, seen.thread_ts or "", user)
        elif seen.streaming:
            await self.fake.react(self.channel, seen.ts, user, "x")
        else:
            value = self._value(seen, action) if name == RATE else None
            await self.fake.press(self.channel, seen.ts, name, user=user, value=value)

    def replies(self) -> list[Seen]:
        """What citebot has written anywhere, oldest first."""
        channels = list(self.fake.workspace.channels)
        return sorted((seen for each in channels for seen in self.fake.answers(each)), key=lambda seen: seen.ts)

    def said(self) -> list[str]:
        return [shown(each) for each in self.replies()]

    def _about(self, ts: str) -> list[Delivery]:
        return [each for each in self.fake.deliveries.sent if each.payload.get("event", {}).get("ts") == ts]

    def _value(self, seen: Seen, action: str) -> str:
        elements = [element for block in seen.blocks for element in block.get("elements", [])]
        rating = next(element for element in elements if element.get("action_id") == RATE)
        return str(rating["positive_button" if action == "good" else "negative_button"]["value"])


def _named(seen: Seen, label: str) -> str:
    """The id of the button with a label, or nothing."""
    elements = [element for block in seen.blocks for element in block.get("elements", [])]
    found = (each["action_id"] for each in elements if each.get("type") == "button" and each["text"]["text"] == label)
    return str(next(found, ""))


def shown(seen: Seen) -> str:
    """What a person reads in a message, but for the labels of buttons; of the steps the one that is under way."""
    labels = {"Helpful", "Not helpful", "Stop", "Share", "Approve", "Abort"}
    lines = [line for line in seen.text.split("\n") if line not in labels]
    steps = [title for title, state in seen.tasks.items() if state == "in_progress"]
    return "\n".join([*lines, *steps]).strip()
