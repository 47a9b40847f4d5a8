"""Offices on the fake platforms, and real processes of citebot that serve them."""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from bot.adapters.slack.connection import CONNECTIONS
from tests.fakes.discord import FakeDiscord
from tests.fakes.loopback.faults import Gate
from tests.fakes.serving import serve
from tests.fakes.slack import FakeSlack
from tests.fakes.slack.blocks import pressables
from tests.forks import Fork, ForkServer
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent.parent
REDELIVERY = 60.0  # seconds until Slack delivers again what nobody acknowledged
QUESTION = "where is parse_date defined?"


class Office(ABC):
    """Ann and citebot on one platform. A question goes by the id of its message."""

    opening: str  # the call that an answer begins with
    calls: frozenset[str]  # those that no answer does without

    def __init__(self, fake: FakeSlack | FakeDiscord) -> None:
        self._faults, self._until = fake.faults, fake.until

    @property
    @abstractmethod
    def variables(self) -> Mapping[str, str]:
        """What `citebot serve` needs in its environment."""

    @property
    @abstractmethod
    def held_calls(self) -> frozenset[str]:
        """The names of the calls that were held."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether citebot hears what is said."""

    @abstractmethod
    async def ask(self) -> str:
        """Mention citebot with the question; return the id."""

    @abstractmethod
    def replies(self, question: str) -> Sequence[str]:
        """The texts of what citebot has written about a question."""

    @abstractmethod
    def is_answered(self, question: str) -> bool:
        """Whether an answer is whole: whether it has its buttons."""

    @abstractmethod
    async def press(self, question: str, label: str) -> None:
        """Press, as Ann, a button below the last message that citebot has written about a question."""

    def hang(self, call: str, *, skip: int = 0, after: bool = False) -> Gate:
        """Hold a call, before or after it takes effect; `"*"` means any."""
        return self._faults.hang(call, skip=skip, after=after)

    def recover(self) -> None:
        """Hold no call any more."""
        self._faults.clear()

    def redeliver(self) -> None:  # noqa: B027 - where a platform tells everything once, there is nothing to do
        """Deliver again what nobody acknowledged, where the platform does that."""

    async def until(self, predicate: Callable[[], object]) -> None:
        """Wait until something is true, looking again at each change."""
        await self._until(predicate, within=LIMIT_SECONDS)


class SlackOffice(Office):
    """Ann and citebot in the fake Slack."""

    opening = "chat.startStream"
    calls = frozenset({"chat.startStream", "chat.stopStream"})

    def __init__(self, fake: FakeSlack) -> None:
        super().__init__(fake)
        self.fake = fake
        self._ann = fake.add_user("ann")
        self._channel = fake.add_channel("general", members=(self._ann,))

    @property
    def variables(self) -> Mapping[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.fake.bot_token,
            "SLACK_APP_TOKEN": self.fake.app_token,
            "SLACK_API_BASE_URL": self.fake.api_url,
        }

    @property
    def held_calls(self) -> frozenset[str]:
        return frozenset(call.method for call in self.fake.calls if call.fault is not None)

    @property
    def is_connected(self) -> bool:
        return len(self.fake.socket.connections) >= CONNECTIONS

    async def ask(self) -> str:
        return await self.fake.mention(self._channel, self._ann, QUESTION)

    def replies(self, question: str) -> Sequence[str]:
        return [seen.text for seen in self.fake.answers(self._channel, question)]

    def is_answered(self, question: str) -> bool:
        answers = self.fake.answers(self._channel, question)
        return any(not seen.streaming and "citebot_rate" in seen.buttons for seen in answers)

    async def press(self, question: str, label: str) -> None:
        """Find the button by its label."""
        shown = self.fake.answers(self._channel, question)[-1]
        found = [each["action_id"] for _, each in pressables(shown.blocks) if each.get("text", {}).get("text") == label]
        await self.fake.press(self._channel, shown.ts, found[0], user=self._ann)

    def redeliver(self) -> None:
        self.fake.clock.advance(REDELIVERY)


class DiscordOffice(Office):
    """Ann and citebot in the fake Discord, which tells everything once."""

    opening = "create_message"
    calls = frozenset({"start_thread_from_message", "create_message", "edit_message"})

    def __init__(self, fake: FakeDiscord) -> None:
        super().__init__(fake)
        self.fake = fake
        self._ann = fake.add_user("ann")
        self._channel = fake.add_channel("general")

    @property
    def variables(self) -> Mapping[str, str]:
        return {
            "DISCORD_TOKEN": self.fake.token,
            "DISCORD_API_BASE_URL": self.fake.api_url,
            "DISCORD_GATEWAY_URL": self.fake.gateway_url,
        }

    @property
    def held_calls(self) -> frozenset[str]:
        return frozenset(call.name for call in self.fake.calls if call.fault is not None)

    @property
    def is_connected(self) -> bool:
        return any(each.connection is not None for each in self.fake.gateway.sessions)

    async def ask(self) -> str:
        return self.fake.mention(self._channel, self._ann, QUESTION)

    def replies(self, question: str) -> Sequence[str]:
        return [seen.text for seen in self.fake.answers(question)] if question in self.fake.world.channels else []

    def is_answered(self, question: str) -> bool:
        begun = question in self.fake.world.channels
        return begun and any("Helpful" in seen.buttons for seen in self.fake.answers(question))

    async def press(self, question: str, label: str) -> None:
        """Press it in the thread."""
        self.fake.press(self.fake.answers(question)[-1].id, self._ann, label)


@asynccontextmanager
async def in_slack() -> AsyncIterator[SlackOffice]:
    """Open a Slack without limits."""
    async with FakeSlack() as fake:
        fake.limits.enabled = False
        yield SlackOffice(fake)


@asynccontextmanager
async def in_discord() -> AsyncIterator[DiscordOffice]:
    """Open a Discord without limits."""
    async with FakeDiscord() as fake:
        fake.limits.enabled = False
        yield DiscordOffice(fake)


OFFICES: Mapping[str, Callable[[], AbstractAsyncContextManager[Office]]] = {"slack": in_slack, "discord": in_discord}


class Processes:
    """The processes of one test, which serve its offices."""

    def __init__(
        self,
        forks: ForkServer,
        variables: Mapping[str, str],
        directory: Path,
        offices: Sequence[Office],
        *,
        is_hurried: bool = False,
    ) -> None:
        self._forks = forks
        self._variables = dict(variables)
        for office in offices:
            self._variables |= office.variables
        self._directory = directory
        self._offices = offices
        self._is_hurried = is_hurried
        self._running: list[Fork] = []

    async def start(self, point: str = "", *, heard: Sequence[Office] | None = None) -> Fork:
        """Start a process that is killed at the point, and wait until it hears all offices, or some."""
        told = (str(self._directory), point, "all", self._is_hurried)
        fork = await asyncio.to_thread(self._forks.start, serve, *told, env=self._variables)
        self._running.append(fork)
        for office in self._offices if heard is None else heard:
            await office.until(lambda: office.is_connected)  # noqa: B023
        return fork

    async def end(self, fork: Fork, number: int = signal.SIGTERM) -> int:
        """Send a signal, unless it is 0, and wait for the end, also as the platforms see it; return how it ended."""
        code = await fork.end(number)
        for office in self._offices:
            await office.until(lambda: not office.is_connected)  # noqa: B023
        return code

    async def close(self) -> None:
        """Kill what still runs."""
        for fork in self._running:
            await fork.end(signal.SIGKILL)
