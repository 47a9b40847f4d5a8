"""Worlds on the fake Slack: people in a workspace, and citebot there behind the real Bolt, in either mode."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from mimetypes import guess_type
from pathlib import Path
from typing import Literal

from starlette.routing import Route

from bot.adapters.slack.adapter import SlackAdapter, SlackOptions
from bot.adapters.slack.endpoint import PATH
from bot.adapters.slack.platform import RATES, Streaming
from bot.adapters.slack.rendering import PREFIX, RATE
from bot.conversations.assembly import ChatPolicy
from bot.http.server import LatePostRoutes, make_application, run_http_server
from bot.messages import ButtonAction, SendMethod
from bot.messages import RateLimit as SendRate
from bot.monitoring.observer import Loss
from bot.ports import ChatPlatform
from tests.bot.worlds import Life, RemoteWorld
from tests.fakes.answerer import FakeAnswerer
from tests.fakes.slack import Delivery, FakeSlack, Seen

Mode = Literal["socket", "http"]


class SlackWorld(RemoteWorld):
    """People in a channel of the fake Slack."""

    name = "slack"

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
        super().__init__(fake, path, paced=paced, policy=policy, agent=agent)
        self.fake = fake
        self.channel = fake.add_channel("general", members=tuple(self.people.values()))
        self.slack: SlackAdapter | None = None
        self.address = ""  # where requests come in, in HTTP mode
        self.lost: list[Loss] = []
        self._rates: dict[SendMethod, SendRate] = dict(RATES) if paced else {}
        self._streaming = streaming
        self._mode: Mode = mode
        self._channels: dict[str, str] = {}  # of messages that are in no thread of the channel

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
        await super().begin()
        if self._mode == "http":
            return
        connected = asyncio.create_task(self.fake.connected())
        await asyncio.wait({connected, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():  # it will not connect any more
            connected.cancel()
            self.task.result()
        await connected

    async def _open_platform(self, stack: AsyncExitStack) -> ChatPlatform:
        self.slack = await stack.enter_async_context(SlackAdapter.open(self.options, self.clock))
        return self.slack.platform

    async def _listen(self, life: Life, stack: AsyncExitStack) -> None:
        assert self.slack is not None
        server, doors = make_application(), LatePostRoutes()
        server.router.routes.append(Route(PATH, doors.receive, methods=["POST"]))
        listening = self.slack.listen(
            self.conversations, self.repositories, self.policy.access, doors, self.lost.append
        )
        await stack.enter_async_context(listening)
        if self._mode == "http":
            self.address = await stack.enter_async_context(run_http_server(server, host="127.0.0.1", port=0))
            self.fake.serve_http(f"{self.address}{PATH}")
        await super()._listen(life, stack)

    async def mention(self, text: str, *, author: str = "ann", thread: str = "", deliveries: int = 1) -> str:
        ts = await self.fake.mention(self.channel, self.people[author], text, thread or None)
        for delivery in self._about(ts):
            for _ in range(deliveries - 1):
                await self.fake.deliveries.resend(delivery)
        return ts

    async def attach(self, text: str, files: Mapping[str, bytes]) -> str:
        hosted = [
            self.fake.files.host(name, content, guess_type(name)[0] or "text/plain") for name, content in files.items()
        ]
        words = f"<@{self.fake.bot_user}> {text}"
        return await self.fake.message(self.channel, self.people["ann"], words, files=tuple(hosted))

    async def follow_up(self, text: str, *, thread: str, author: str = "ann", to_others: bool = False) -> str:
        text = self._to_bob(text) if to_others else text
        return await self.fake.message(self.channel, self.people[author], text, thread)

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
        user, before = self.people[author], len(self.fake.ephemeral(self.channel, self.people[author]))
        await self._press(action, user)
        await self.fake.delivered()
        return "" if action == "stop" and author == "ann" else await self._next_notice(user, before)

    async def choose(self, label: str, *, author: str = "ann") -> str:
        user, before = self.people[author], len(self.fake.ephemeral(self.channel, self.people[author]))
        newest = await self.fake.until(lambda: [each for each in self.replies() if _named(each, label)])
        await self.fake.press(self.channel, newest[-1].ts, _named(newest[-1], label), user=user)
        return "" if author == "ann" else await self._next_notice(user, before)

    async def choose_late(self, label: str, seen: Seen, *, author: str) -> str:
        """Press a button as it was when somebody saw a message that has changed since; return what they are told."""
        user, before = self.people[author], len(self.fake.ephemeral(self.channel, self.people[author]))
        await self.fake.press(self.channel, seen.ts, _named(seen, label), user=user, blocks=seen.blocks)
        return await self._next_notice(user, before)

    async def _next_notice(self, user: str, before: int) -> str:
        """What only one person is told, once there is more than before."""
        await self.fake.until(lambda: len(self.fake.ephemeral(self.channel, user)) > before)
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
    """What a person reads in a message, except the labels of buttons; of the steps the one that is in progress."""
    labels = {"Helpful", "Not helpful", "Stop", "Share", "Approve", "Abort"}
    lines = [line for line in seen.text.split("\n") if line not in labels]
    steps = [title for title, state in seen.tasks.items() if state == "in_progress"]
    sources = [f"{text} {url}" for text, url in seen.sources.items()] if steps else []
    return "\n".join([*lines, *steps, *sources]).strip()
