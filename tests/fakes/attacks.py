"""Attacks of hostile people on citebot, a second person who asks meanwhile, and the replies to both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack, Seen
from tests.waiting import LIMIT_SECONDS, expect

LONGEST = 40_000  # characters; Slack takes no more
FITTING = 3_900  # characters that are read
QUESTION = "where is parse_date defined?"
CORNERS = 6  # channels of the second person: in one of them citebot posts once a second

# What is repeated, or put around itself, until a message is full of it.
FAMILIES: Mapping[str, str] = {
    "spaces": " ", "tabs": "\t", "newlines": "\n", "blank lines": " \t\n", "wide blanks": "\u3000",
    "round brackets": "(", "square brackets": "[", "backticks": "`", "letters": "a", "digits": "1", "dots": ".",
    "slashes": "/", "paths": "a/b.", "quotes": "\"'", "stars": "*_", "right to left": "\u202b\u05d0",
    "combining marks": "e\u0301", "wide forms": "\ufdfa", "quotations": "> ", "lists": "  - a\n", "headings": "# a\n",
    "tables": "|a", "mentions": "<@U0ELSEWHERE> ", "links": "https://a.example/b ",
    "Markdown links": "[a](https://a.example) ", "Python frames": 'File "a.py", line 1\n', "Java frames": "at a.b(",
    "JavaScript frames": "at a (b", "Go frames": "a(\n\tb", "names": "in shop and ",
}  # fmt: skip


def fill(piece: str, length: int) -> str:
    """Ask something that one family of characters is in the middle of."""
    return f"where is {(piece * length)[:length]} x defined?"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What an attack did: how long others waited for a sign of life, and the longest that a probe took, in seconds."""

    waits: Sequence[float]
    probe: float


@dataclass
class Town:
    """A workspace with citebot in it: Mallory attacks, Bob asks ordinary questions, somebody watches the probes."""

    fake: FakeSlack
    address: str = ""
    mallory: str = field(init=False)
    bob: str = field(init=False)
    square: str = field(init=False)
    corners: Sequence[str] = field(init=False)
    _turn: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.fake.limits.enabled = False
        self.mallory, self.bob = self.fake.add_user("mallory"), self.fake.add_user("bob")
        self.square = self.fake.add_channel("square", members=(self.mallory,))
        self.corners = [self.fake.add_channel(f"corner{number}", members=(self.bob,)) for number in range(CORNERS)]
        self._turn = cycle(self.corners)

    async def endure(self, attack: Callable[[Town], Awaitable[Sequence[str]]], *, questions: int = 1) -> Figures:
        """Let an attack happen while the second person asks; everybody gets an answer, or a sentence."""
        async with probed(self.address) as probes:
            threads = await attack(self)
            waits = [await self.wait_of_bob() for _ in range(questions)]
            for thread in threads:
                await self.fake.until(lambda: self.is_settled(self.square, thread), within=LIMIT_SECONDS)  # noqa: B023
        return Figures(waits=waits, probe=max(probes))

    async def wait_of_bob(self) -> float:
        """Ask an ordinary question, and wait for its answer; return how long the sign of life took."""
        waited, answer = await self.ask()
        assert "dates.py" in answer, answer
        return waited

    async def ask(self) -> tuple[float, str]:
        """Let the second person ask; return how long the sign of life took, and the answer."""
        since, corner = time.monotonic(), next(self._turn)
        question = await self.fake.mention(corner, self.bob, f"in shop, {QUESTION}")
        await self.fake.until(lambda: self.fake.answers(corner, question), within=LIMIT_SECONDS)
        waited = time.monotonic() - since
        (answer,) = await self.fake.until(lambda: self.is_settled(corner, question), within=LIMIT_SECONDS)
        return waited, answer.text

    def is_settled(self, channel: str, thread: str) -> list[Seen]:
        """Return the replies in a thread if there are any, and none of them grows any more."""
        found = self.fake.answers(channel, thread)
        grows = any(each.streaming or "citebot_stop" in each.buttons for each in found)
        return [] if grows else found


@asynccontextmanager
async def probed(address: str) -> AsyncIterator[list[float]]:
    """Ask for `/healthz` all the while; each answer must be good, and notes how many seconds it took."""
    took: list[float] = [0.0]

    async def probe() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_SECONDS)) as session:
            while True:
                since = time.monotonic()
                async with session.get(f"{address}/healthz") as answer:
                    assert answer.status == 200
                took.append(time.monotonic() - since)
                await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        probing = group.create_task(probe())
        yield took
        probing.cancel()


async def count_stalls(address: str) -> float:
    """Return how often the event loop of a process was held for long since its start, in processor time.

    What grows faster than the text holds it for seconds; a slow machine alone, for a twentieth.
    """
    async with aiohttp.ClientSession() as session, session.get(f"{address}/metrics") as answer:
        families = text_string_to_metric_families(await answer.text())
    samples = [sample for family in families for sample in family.samples]
    count, short = (
        next(
            each.value
            for each in samples
            if each.name == f"citebot_loop_stall_seconds_{name}" and each.labels == labels
        )
        for name, labels in (("count", {}), ("bucket", {"le": "0.2"}))
    )
    return count - short


def say(text: str) -> Callable[[Town], Awaitable[Sequence[str]]]:
    """Attack with a message."""

    async def attack(town: Town) -> Sequence[str]:
        return [await town.fake.mention(town.square, town.mallory, text)]

    return attack


def say_in_long_thread(text: str, messages: int) -> Callable[[Town], Awaitable[Sequence[str]]]:
    """Fill a thread with messages, and call citebot into it."""

    async def attack(town: Town) -> Sequence[str]:
        root = await town.fake.message(town.square, town.mallory, text)
        for _ in range(messages - 1):
            await town.fake.message(town.square, town.mallory, text, root)
        await town.fake.delivered()
        await town.fake.mention(town.square, town.mallory, "why is that?", root)
        return [root]

    return attack


def edit_into(text: str) -> Callable[[Town], Awaitable[Sequence[str]]]:
    """Ask something short, and make it long."""

    async def attack(town: Town) -> Sequence[str]:
        question = await town.fake.mention(town.square, town.mallory, QUESTION)
        await town.fake.edit(town.square, question, f"<@{town.fake.bot_user}> {text}")
        return [question]

    return attack


def command(text: str) -> Callable[[Town], Awaitable[Sequence[str]]]:
    """Write something long behind a slash command; only its author sees what comes of it."""

    async def attack(town: Town) -> Sequence[str]:
        told = len(town.fake.ephemeral(town.square, town.mallory))
        await town.fake.slash("/citebot", text, channel=town.square, user=town.mallory)
        await town.fake.until(lambda: len(town.fake.ephemeral(town.square, town.mallory)) > told, within=LIMIT_SECONDS)
        return []

    return attack


def push(repository: GitRepo, path: str, content: str) -> Callable[[Town], Awaitable[Sequence[str]]]:
    """Commit a file to a repository that citebot follows, and wait until it answers from there."""

    async def attack(town: Town) -> Sequence[str]:
        repository.write(path, content)
        repository.write("marker.py", f"def marker_{time.monotonic_ns()}():\n    pass\n")
        commit = await asyncio.to_thread(repository.commit, "Push something")
        async with expect("f'at {commit[:7]}' in (town.ask())[1]"):
            while f"at {commit[:7]}" not in (await town.ask())[1]:
                pass
        return []

    return attack


Attacks = Mapping[str, Callable[[Town], Awaitable[Sequence[str]]]]

# Messages of every family, of those that are read and of those that are too long.
MESSAGES: Attacks = {
    f"{length:,} of {name}": say(fill(piece, length))
    for name, piece in FAMILIES.items()
    for length in (FITTING, LONGEST)
}
# Ways in which long texts come in beside messages.
WAYS: Attacks = {
    "a thread of 40,000 tabs a message": say_in_long_thread(fill("\t", LONGEST), 40),
    "a thread of 4,000 letters a message": say_in_long_thread(fill("a b ", FITTING), 200),
    "an edit into 40,000 brackets": edit_into(fill("(", LONGEST)),
    "a command of 40,000 tabs": command(fill("\t", LONGEST)),
    "a command of 3,900 letters": command(fill("a", FITTING)),
}


# Files that are pushed to a repository which citebot follows.
FILES: Mapping[str, tuple[str, str]] = {
    "a file of 2,000,000 spaces": ("shop/spaces.py", " " * 2_000_000),
    "a file of 3,000 brackets": ("shop/few_brackets.py", "(\n" * 1_500),
    "a file of 30,000 brackets": ("shop/brackets.py", "(\n" * 15_000),
    "a .gitattributes of 30,000 brackets": (".gitattributes", "[" * 30_000 + " linguist-generated\n"),
    "a .gitattributes of 20,000 globs": (
        ".gitattributes", "".join(f"*a{number}*b*c linguist-generated\n" for number in range(20_000))
    ),
}  # fmt: skip
