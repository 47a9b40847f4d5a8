"""The platforms that `benchmarks.chat` asks on: fakes on loopback, each seen by the calls that citebot makes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from bot.adapters.slack.connection import CONNECTIONS
from bot.adapters.slack.rendering import RATE
from tests.fakes import discord
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import Call, FakeSlack

CHANNELS = 6
PEOPLE = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A call about one answer: when it came, whether people see a change by it, and what they see since."""

    at: float
    visible: bool
    text: bool
    whole: bool


class Platform(Protocol):
    """A chat platform with citebot in it. Questions go by an id of the platform's own, times by its own clock."""

    def variables(self) -> Mapping[str, str]:
        """What `citebot serve` needs in its environment."""

    def lift_limits(self) -> None:
        """Refuse nothing any more for being called too often."""

    def now(self) -> float:
        """Tell the time."""

    def is_connected(self) -> bool:
        """Whether citebot hears what is said."""

    async def ask(self, text: str, number: int) -> str:
        """Mention citebot, in one of the channels and as one of the people that the number chooses; return the id."""

    def steps(self, question: str) -> Sequence[Step]:
        """The calls about the answer to a question so far, oldest first."""

    def text(self, question: str) -> str:
        """What the answer reads now, of however many messages it is."""

    def refusals(self) -> int:
        """How many calls were refused for coming too often."""

    async def until(self, predicate: Callable[[], object], within: float) -> None:
        """Wait until something is true, looking again at each change; `TimeoutError` after so many seconds."""


class InSlack:
    """The fake Slack, over Socket Mode."""

    def __init__(self, fake: FakeSlack) -> None:
        self._fake = fake
        self._people = [fake.add_user(f"person{number}") for number in range(PEOPLE)]
        self._channels = [fake.add_channel(f"team{number}", members=tuple(self._people)) for number in range(CHANNELS)]
        self._asked: dict[str, str] = {}  # where each question was asked
        self._about: dict[str, str] = {}  # the question that a message is an answer to
        self._steps: dict[str, list[Step]] = defaultdict(list)
        self._under_way: list[Call] = []
        self._read = 0

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncGenerator[Platform]:
        """Serve a Slack until the context ends."""
        async with FakeSlack() as fake:
            yield cls(fake)

    def variables(self) -> Mapping[str, str]:
        """Return tokens and address."""
        fake = self._fake
        return {
            "SLACK_BOT_TOKEN": fake.bot_token,
            "SLACK_APP_TOKEN": fake.app_token,
            "SLACK_API_BASE_URL": fake.api_url,
        }

    def lift_limits(self) -> None:
        """Turn them off."""
        self._fake.limits.enabled = False

    def now(self) -> float:
        """Return the fake's time."""
        return self._fake.clock.now()

    def is_connected(self) -> bool:
        """Whether all connections are there."""
        return len(self._fake.socket.connections) >= CONNECTIONS

    async def ask(self, text: str, number: int) -> str:
        """Mention citebot in a channel."""
        channel = self._channels[number % CHANNELS]
        question = await self._fake.mention(channel, self._people[number % PEOPLE], text)
        self._asked[question] = channel
        return question

    def steps(self, question: str) -> Sequence[Step]:
        """Sort what was called since, and return what is about this question."""
        calls = self._under_way + self._fake.calls[self._read :]
        self._read = len(self._fake.calls)
        self._under_way = [call for call in calls if call.status is None]
        for call in calls:
            if call.status is not None:
                self._note(call)
        return self._steps[question]

    def text(self, question: str) -> str:
        """Return what hangs below the question."""
        return "\n".join(seen.text for seen in self._fake.answers(self._asked[question], question))

    def refusals(self) -> int:
        """Count the 429s."""
        return sum(call.status == 429 for call in self._fake.calls)

    async def until(self, predicate: Callable[[], object], within: float) -> None:
        """Wait for the fake."""
        await self._fake.until(predicate, within=within)

    def _note(self, call: Call) -> None:
        ts = str(call.args.get("ts", ""))
        question = str(call.args.get("thread_ts", "")) or self._about.get(ts, ts)
        if call.ok and "ts" in call.response:
            self._about[str(call.response["ts"])] = question
        blocks: list[dict[str, Any]] = call.args.get("blocks") or []
        pieces = [*blocks, *(call.args.get("chunks") or [])]
        step = Step(
            at=call.at,
            visible=call.ok and call.method.startswith("chat."),
            text=any(piece["type"] in {"markdown", "markdown_text"} for piece in pieces),
            whole=any(each.get("action_id") == RATE for block in blocks for each in block.get("elements", ())),
        )
        self._steps[question].append(step)


class InDiscord:
    """The fake Discord; an answer is in the thread of its question, which has the same id."""

    def __init__(self, fake: FakeDiscord) -> None:
        self._fake = fake
        self._people = [fake.add_user(f"person{number}") for number in range(PEOPLE)]
        self._channels = [fake.add_channel(f"team{number}") for number in range(CHANNELS)]
        self._steps: dict[str, list[Step]] = defaultdict(list)
        self._under_way: list[discord.Call] = []
        self._read = 0

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncGenerator[Platform]:
        """Serve a Discord until the context ends."""
        async with FakeDiscord() as fake:
            yield cls(fake)

    def variables(self) -> Mapping[str, str]:
        """Return token and addresses."""
        fake = self._fake
        return {
            "DISCORD_TOKEN": fake.token,
            "DISCORD_API_BASE_URL": fake.api_url,
            "DISCORD_GATEWAY_URL": fake.gateway_url,
        }

    def lift_limits(self) -> None:
        """Turn them off, that of active threads as well."""
        self._fake.limits.enabled = False
        self._fake.rules.most_active_threads *= 100

    def now(self) -> float:
        """Return the fake's time."""
        return self._fake.clock.now()

    def is_connected(self) -> bool:
        """Whether a session has its connection."""
        return any(session.connection is not None for session in self._fake.gateway.sessions)

    async def ask(self, text: str, number: int) -> str:
        """Mention citebot in a channel."""
        return self._fake.mention(self._channels[number % CHANNELS], self._people[number % PEOPLE], text)

    def steps(self, question: str) -> Sequence[Step]:
        """Sort what was called since, and return what is about this question."""
        calls = self._under_way + self._fake.calls[self._read :]
        self._read = len(self._fake.calls)
        self._under_way = [call for call in calls if call.status is None]
        for call in calls:
            if call.status is not None and "channel" in call.args:
                self._note(call)
        return self._steps[question]

    def text(self, question: str) -> str:
        """Return what is in the thread of the question."""
        return "\n".join(seen.text for seen in self._fake.answers(question))

    def refusals(self) -> int:
        """Count the 429s."""
        return sum(call.status == 429 for call in self._fake.calls)

    async def until(self, predicate: Callable[[], object], within: float) -> None:
        """Wait for the fake."""
        await self._fake.until(predicate, within=within)

    def _note(self, call: discord.Call) -> None:
        question = call.args.get("message", "") if call.name == "start_thread_from_message" else call.args["channel"]
        lines = str(call.fields.get("content") or "").splitlines()
        buttons = [each for row in call.fields.get("components") or [] for each in row["components"]]
        step = Step(
            at=call.at,
            visible=call.status == 200 and call.name in {"create_message", "edit_message"},
            text=any(line and not line.startswith("-# ") for line in lines),
            whole=any(str(each.get("custom_id")).startswith("citebot:good:") for each in buttons),
        )
        self._steps[question].append(step)


PLATFORMS: Mapping[str, Callable[[], AbstractAsyncContextManager[Platform]]] = {
    "slack": InSlack.opened,
    "discord": InDiscord.opened,
}
