"""A serving process under attack: whatever one person or repository sends, others are answered all the while."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bot.offices import Processes, in_discord, in_slack
from tests.fakes.attacks import (
    FAMILIES,
    FILES,
    FITTING,
    LONGEST,
    MESSAGES,
    WAYS,
    Attacks,
    Town,
    count_stalls,
    fill,
    probed,
    push,
)
from tests.fakes.loopback.ports import find_free_port
from tests.fakes.repositories import GitRepo
from tests.forks import ForkServer

pytestmark = pytest.mark.exhaustive

TWO_REPOSITORIES = """
[[repositories]]
path = "{0}/shop"

[[repositories]]
path = "{0}/website"
"""


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitRepo, GitRepo]:
    """Two of them, so that questions are routed."""
    team = tmp_path_factory.mktemp("team")
    shop, website = GitRepo(team / "shop"), GitRepo(team / "website")
    shop.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    website.write("web/pages.py", 'def show_page(name):\n    """Show a page."""\n    return name\n')
    for repository in (shop, website):
        repository.commit()
    (team / "citebot.toml").write_text(TWO_REPOSITORIES.format(team))
    return shop, website


@pytest.fixture
def settings(tmp_path: Path) -> Mapping[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "CITEBOT_HOME": str(tmp_path / "home"),
        "CITEBOT_QUESTIONS_PER_MINUTE": "100000",
        "CITEBOT_QUESTIONS_PER_DAY": "100000",
        "CITEBOT_WEB_PORT": str(find_free_port()),
        "CITEBOT_METRICS_PORT": str(find_free_port()),
    }


def address(settings: Mapping[str, str], which: str) -> str:
    return f"http://127.0.0.1:{settings[f'CITEBOT_{which}_PORT']}"


@asynccontextmanager
async def besieged(forks: ForkServer, settings: Mapping[str, str], shop: GitRepo) -> AsyncIterator[tuple[Town, str]]:
    """A workspace with a serving process that has answered a first question, and the address of its metrics."""
    async with in_slack() as office:
        processes = Processes(forks, settings, shop.root.parent, [office], is_hurried=True)
        try:
            await processes.start()
            town = Town(office.fake, address(settings, "WEB"))
            await town.wait_of_bob()
            yield town, address(settings, "METRICS")
        finally:
            await processes.close()


async def endure(town: Town, metrics: str, attacks: Attacks) -> None:
    """Endure attack after attack: the second person is answered, and no call holds the loop too long."""
    held: list[str] = []
    for name, attack in attacks.items():
        before = await count_stalls(metrics)
        await town.endure(attack)
        if await count_stalls(metrics) > before:  # what really holds the loop does so again
            before = await count_stalls(metrics)
            await town.endure(attack)
        held += [name] * int(await count_stalls(metrics) - before)

    assert held == []


@pytest.mark.parametrize("length", [FITTING, LONGEST])
async def test_messages_of_any_family_hold_nobody_up(
    length: int, forks: ForkServer, settings: Mapping[str, str], repositories: tuple[GitRepo, GitRepo]
) -> None:
    async with besieged(forks, settings, repositories[0]) as (town, metrics):
        attacks = {name: attack for name, attack in MESSAGES.items() if name.startswith(f"{length:,} ")}
        await endure(town, metrics, attacks)


async def test_long_texts_hold_nobody_up_however_they_come_in(
    forks: ForkServer, settings: Mapping[str, str], repositories: tuple[GitRepo, GitRepo]
) -> None:
    async with besieged(forks, settings, repositories[0]) as (town, metrics):
        await endure(town, metrics, WAYS)


async def test_pushed_files_hold_nobody_up(
    forks: ForkServer, settings: Mapping[str, str], repositories: tuple[GitRepo, GitRepo]
) -> None:
    shop, _ = repositories
    async with besieged(forks, settings, shop) as (town, metrics):
        await endure(town, metrics, {name: push(shop, *file) for name, file in FILES.items()})


async def test_messages_in_discord_hold_nobody_up(
    forks: ForkServer, settings: Mapping[str, str], repositories: tuple[GitRepo, GitRepo]
) -> None:
    async with in_discord() as office:
        processes = Processes(forks, settings, repositories[0].root.parent, [office], is_hurried=True)
        try:
            await processes.start()
            mallory, square = office.fake.add_user("mallory"), office.fake.add_channel("square")
            before = await count_stalls(address(settings, "METRICS"))
            async with probed(address(settings, "WEB")):
                hostile = [office.fake.mention(square, mallory, fill(piece, FITTING)) for piece in FAMILIES.values()]
                question = await office.ask()
                await office.until(lambda: office.replies(question))
                for each in hostile:
                    await office.until(lambda: each in office.fake.world.channels and office.replies(each))  # noqa: B023
            assert await count_stalls(address(settings, "METRICS")) == before
        finally:
            await processes.close()
