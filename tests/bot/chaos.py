"""Processes that die, stall and lose Postgres at random, while people ask them in Slack and Discord.

`run_chaos` says what became of each question and of each push; `python -m benchmarks.cluster --chaos 500` prints it.
"""

from __future__ import annotations

import asyncio
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from agent import PostgresDatabase
from bot.serving.cluster import Role
from bot.storage.database import open_postgres
from bot.storage.inbox import LEASE_SECONDS
from bot.tasks import run_in_background
from tests.bot.clusters import Cluster, Member, share
from tests.bot.offices import REDELIVERY
from tests.fakes.cut_proxy import CutProxy, open_cut_proxy
from tests.fakes.discord import FakeDiscord
from tests.fakes.postgres import make_database
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack
from tests.forks import ForkServer

Platform = Literal["slack", "discord"]
Misfortune = Literal["kill", "end", "stop", "refuse", "hang"]

MISFORTUNES: Sequence[Misfortune] = ("kill", "kill", "end", "stop", "stop", "refuse", "hang")
PUT_ASIDE = "I could not finish this one"
_LOOK_SECONDS = 0.5
_CALM_REDELIVERY = 10.0  # seconds, at the end: Slack's last try is five minutes after the one before


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is asked of how many processes, and how long they stall and are cut off, in seconds."""

    questions: int
    roles: tuple[Role, ...]
    pushes: int
    stall: float
    outage: float
    pause: float  # between two misfortunes
    limit: float  # within which all is settled at last


SMALL = Scale(
    questions=30, roles=("index", "front", "front", "answer", "answer"), pushes=2, stall=2.0, outage=2.0, pause=1.5,
    limit=240.0,
)  # fmt: skip


def make_large(questions: int) -> Scale:
    """Return the scale at which processes stall for longer than their leases."""
    roles: tuple[Role, ...] = ("index", "index", "front", "front", "front", "answer", "answer", "answer")
    return Scale(
        questions=questions, roles=roles, pushes=10, stall=LEASE_SECONDS + 10, outage=20.0, pause=6.0, limit=900.0
    )


@dataclass(kw_only=True)
class Asked:
    """A question: its message, and for how long it took until it was settled, as far as it is."""

    platform: Platform
    message: str
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of everything. `unclean` has a description of each question that is not settled exactly once."""

    asked: int
    seconds: Sequence[float]
    unclean: Sequence[str]
    put_aside: int
    missing_pushes: Sequence[str]
    dead_leases: Sequence[str]
    longest_overdue: float
    rows: tuple[int, int]  # of the inbox, and those that are open
    misfortunes: Mapping[Misfortune, int]
    took: float

    @property
    def is_clean(self) -> bool:
        """Whether each question was settled once, each push is searchable, and the dead hold nothing."""
        found = [*self.unclean, *self.missing_pushes, *self.dead_leases]
        return not found and self.rows == (self.asked, 0)

    def list_figures(self) -> dict[str, str]:
        """Name the figures for a table."""
        cuts = statistics.quantiles(self.seconds, n=100) if len(self.seconds) > 1 else [0.0] * 99
        return {
            "questions asked": str(self.asked),
            "settled exactly once": str(self.asked - len(self.unclean)),
            "of those, put aside with a sentence": str(self.put_aside),
            "rows of the inbox, and open ones": f"{self.rows[0]}, {self.rows[1]}",
            "pushes that are not searchable": str(len(self.missing_pushes)),
            "leases of the dead": str(len(self.dead_leases)),
            "longest that a question lay beyond its lease": f"{self.longest_overdue:.0f} s",
            "question to settled, p50, p95, longest": f"{cuts[49]:.1f} s, {cuts[94]:.1f} s, {max(self.seconds):.0f} s",
            "misfortunes": ", ".join(f"{count} {name}" for name, count in sorted(self.misfortunes.items())),
            "all of it": f"{self.took:.0f} s",
        }


@dataclass(kw_only=True)
class Scene:
    """A cluster, its database, the network between them, and the people who ask."""

    scale: Scale
    cluster: Cluster
    discord: FakeDiscord
    speaker: str
    room: str
    repository: GitRepo
    database: PostgresDatabase  # not over the network that is cut
    network: CutProxy
    asked: list[Asked] = field(default_factory=list)
    misfortunes: Counter[Misfortune] = field(default_factory=Counter)
    deaths: dict[str, float] = field(default_factory=dict)  # by pid
    longest_overdue: float = 0.0

    async def ask(self, text: str, platform: Platform) -> Asked:
        """Mention citebot."""
        if platform == "slack":
            message = await self.cluster.ask(text)
        else:
            message = self.discord.mention(self.room, self.speaker, text)
        self.asked.append(asked := Asked(platform=platform, message=message))
        return asked

    def read(self, asked: Asked) -> Sequence[str]:
        """The texts of what hangs below a question."""
        if asked.platform == "slack":
            return [seen.text for seen in self.cluster.read(asked.message)]
        return [seen.text for seen in self.discord.answers(asked.message)] if self._has_thread(asked) else []

    def is_settled(self, asked: Asked) -> bool:
        """Whether there is one reply, which nothing will change any more."""
        texts = self.read(asked)
        if len(texts) != 1:
            return False
        if asked.platform == "slack":
            (reply,) = self.cluster.read(asked.message)
            is_whole = "citebot_rate" in reply.buttons
            is_growing = reply.streaming or "citebot_stop" in reply.buttons
        else:
            (seen,) = self.discord.answers(asked.message)
            is_whole, is_growing = "Helpful" in seen.buttons, "Stop" in seen.buttons
        return not is_growing and (is_whole or PUT_ASIDE in texts[0])

    def _has_thread(self, asked: Asked) -> bool:
        return asked.message in self.discord.world.channels


@asynccontextmanager
async def open_scene(
    forks: ForkServer, scale: Scale, folder: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Scene]:
    """Make everything, with no process yet; `variables` are for all of them."""
    repository = GitRepo(folder / "shop")
    repository.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    repository.commit("Sell things")
    async with (
        make_database() as url,
        open_postgres(url) as database,
        open_cut_proxy(url) as (network, address),
        FakeSlack() as slack,
        FakeDiscord() as discord,
    ):
        discord.limits.enabled = False
        shared = {
            **share(address, repository, folder),
            "DISCORD_TOKEN": discord.token,
            "DISCORD_API_BASE_URL": discord.api_url,
            "DISCORD_GATEWAY_URL": discord.gateway_url,
            "CITEBOT_TEST_LOGS": str(folder),
            **variables,
        }
        cluster = Cluster(slack, forks, shared, folder)
        speaker, room = discord.add_user("bo"), discord.add_channel("general")
        try:
            yield Scene(
                scale=scale, cluster=cluster, discord=discord, speaker=speaker, room=room, repository=repository,
                database=database, network=network,
            )  # fmt: skip
        finally:
            await cluster.close()


async def run_chaos(forks: ForkServer, scale: Scale, folder: Path, *, seed: int = 7) -> Report:
    """Ask, push, and let things go wrong meanwhile; then wait until all is calm, and look at what is there."""
    began = time.monotonic()
    async with open_scene(forks, scale, folder) as scene:
        for role in scale.roles:
            await scene.cluster.start(role)
        async with run_in_background(watch_answers(scene)), run_in_background(watch_leases(scene)):
            async with misfortunes(scene, random.Random(seed)):
                pushing = asyncio.create_task(push_all(scene))
                for number in range(scale.questions):
                    platform: Platform = "discord" if number % 2 else "slack"
                    await scene.ask(f"where is parse_date defined? ({number})", platform)
                    await asyncio.sleep(scale.pause / 4)
                await pushing
            await wait_until_settled(scene)
            missing = [name for number in range(scale.pushes) if (name := await find_missing_push(scene, number))]
            await wait_until_settled(scene)
        return await report(scene, missing, time.monotonic() - began)


@asynccontextmanager
async def misfortunes(scene: Scene, chance: random.Random) -> AsyncIterator[None]:
    """Let things go wrong, and leave everything running at the end."""
    try:
        async with run_in_background(bring_misfortune(scene, chance)):
            yield
    finally:
        scene.network.set_mode("pass")
        for member in scene.cluster.members:
            member.fork.send(signal.SIGCONT)


async def bring_misfortune(scene: Scene, chance: random.Random) -> None:
    """Kill, stop, or cut off: one thing after the other, without end."""
    while True:
        await asyncio.sleep(scene.scale.pause)
        member = chance.choice(scene.cluster.members)
        misfortune = chance.choice(MISFORTUNES)
        scene.misfortunes[misfortune] += 1
        match misfortune:
            case "kill":
                await replace_member(scene, member, signal.SIGKILL)
            case "end":
                await replace_member(scene, member, signal.SIGTERM)
            case "stop":
                member.fork.send(signal.SIGSTOP)
                await asyncio.sleep(scene.scale.stall)
                member.fork.send(signal.SIGCONT)
            case "refuse" | "hang":
                scene.network.set_mode(misfortune)
                if misfortune == "refuse":
                    scene.network.cut()
                await asyncio.sleep(scene.scale.outage)
                scene.network.set_mode("pass")


async def replace_member(scene: Scene, member: Member, number: int) -> None:
    """End a process, and start another one in its role."""
    await scene.cluster.end(member, number)
    scene.deaths[str(member.fork.pid)] = time.monotonic()
    await scene.cluster.start(member.role)


async def push_all(scene: Scene) -> None:
    """Commit one function after the other while everything runs."""
    for number in range(scene.scale.pushes):
        text = f"def find_pushed_{number}():\n    return {number}\n"
        scene.repository.write(f"shop/pushed_{number}.py", text)
        await asyncio.to_thread(scene.repository.commit, f"Push {number}")
        await asyncio.sleep(scene.scale.pause)


async def find_missing_push(scene: Scene, number: int) -> str:
    """Ask for what was pushed until it is found; return its file where it never is."""
    name, ends = f"pushed_{number}.py", time.monotonic() + scene.scale.limit
    while time.monotonic() < ends:
        asked = await scene.ask(f"where is find_pushed_{number} defined?", "slack")
        while asked.seconds is None and time.monotonic() < ends:  # noqa: ASYNC110 - seen in replies alone
            await asyncio.sleep(_LOOK_SECONDS)
        if any(name in text for text in scene.read(asked)):
            return ""
    return name


async def watch_answers(scene: Scene) -> None:
    """Note when each question is settled."""
    while True:
        for asked in scene.asked:
            if asked.seconds is None and scene.is_settled(asked):
                asked.seconds = time.monotonic() - asked.began
        await asyncio.sleep(_LOOK_SECONDS)


async def watch_leases(scene: Scene) -> None:
    """Note for how long a question lay there that a process had held, after its lease had ended."""
    sql = """SELECT coalesce(max(lease_clock() - lease_until), 0) FROM inbox
        WHERE state IN ('claimed', 'running') AND owner <> '' AND lease_until < lease_clock()"""
    while True:
        ((overdue,),) = await scene.database.rows(sql)
        scene.longest_overdue = max(scene.longest_overdue, float(overdue))
        await asyncio.sleep(_LOOK_SECONDS)


async def wait_until_settled(scene: Scene) -> None:
    """Wait for all; what Slack was not told that it arrived, it delivers again."""
    calm = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(scene.scale.limit):
            while any(asked.seconds is None for asked in scene.asked):
                await asyncio.sleep(_LOOK_SECONDS)
                if time.monotonic() - calm > _CALM_REDELIVERY:
                    calm = time.monotonic()
                    scene.cluster.fake.clock.advance(REDELIVERY)


async def report(scene: Scene, missing_pushes: Sequence[str], took: float) -> Report:
    """Look at all replies again, and into the database: nothing is open, and the dead hold nothing."""
    unclean = [await describe(scene, asked) for asked in scene.asked if not scene.is_settled(asked)]
    ((rows, is_open),) = await scene.database.rows(
        "SELECT count(*), count(*) FILTER (WHERE state IN ('received', 'claimed', 'running')) FROM inbox"
    )
    return Report(
        asked=len(scene.asked),
        seconds=[asked.seconds for asked in scene.asked if asked.seconds is not None],
        unclean=unclean,
        put_aside=sum(any(PUT_ASIDE in text for text in scene.read(asked)) for asked in scene.asked),
        missing_pushes=missing_pushes,
        dead_leases=await list_dead_leases(scene),
        longest_overdue=scene.longest_overdue,
        rows=(int(rows), int(is_open)),
        misfortunes=scene.misfortunes,
        took=took,
    )


async def list_dead_leases(scene: Scene) -> Sequence[str]:
    """Name the leases of processes that have been dead for longer than a lease lasts."""
    held = await scene.database.rows(
        """SELECT name, owner FROM leases WHERE lease_until > lease_clock()
        UNION ALL SELECT message, owner FROM inbox WHERE lease_until > lease_clock()"""
    )
    long_dead = {pid for pid, died in scene.deaths.items() if time.monotonic() - died > LEASE_SECONDS}
    return [f"{name}: {owner}" for name, owner in held if str(owner).split("/")[1] in long_dead]


async def describe(scene: Scene, asked: Asked) -> str:
    """Say what is known of a question that was not settled exactly once."""
    sql = "SELECT id, state, owner, tries, deaths, claims, run_id, handles FROM inbox WHERE message = ?"
    rows = await scene.database.rows(sql, [asked.message])
    if asked.platform == "slack":
        slack = [each for each in scene.cluster.fake.calls if asked.message in str(each.args)]
        calls = [(each.at, each.connection, each.method, each.error) for each in slack]
    else:
        discord = [each for each in scene.discord.calls if asked.message in each.path]
        calls = [(each.at, each.method, each.path, str(each.status)) for each in discord]
    lines = [f"    {_write_time(call[0])} {' '.join(map(str, call[1:]))}" for call in calls]
    return "\n".join([f"{asked.platform} {asked.message}: {list(scene.read(asked))}; {rows}", *lines])


def _write_time(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at)) + f"{at % 1:.3f}"[1:]
