"""Answers about several repositories: one whole answer whatever is killed, with the citations of each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bot.app import TeamApp
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.messages import Capabilities
from bot.serving.service import make_chat_policy
from bot.settings import RepositoryTable, Settings
from bot.storage.database import open_database
from tests.bot.chat import message
from tests.bot.contract import have, until
from tests.bot.worlds import FakeWorld
from tests.fakes.platform import ABLE, SLACK_LIKE, FakePlatform
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen
from tests.waiting import wait_until

QUESTION = "across shop and website, where is send?"
STREAMS = replace(SLACK_LIKE, rates={})


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("able", [ABLE, STREAMS], ids=["edits", "streams"])
async def test_a_kill_at_any_call_leaves_one_answer_about_both(tmp_path: Path, able: Capabilities, after: bool) -> None:
    killed = 0
    for at in range(1, 20):
        world = FakeWorld(tmp_path / f"{at}.sqlite", able=able)
        have(world, "shop", "website")
        async with world.running():
            frozen = world.platform.freeze(at, after=after)
            await world.mention(QUESTION)
            killed += await _killed(world, frozen)
            (said,) = await until(world, lambda said: len(said) == 1 and "website at" in said[0])
            assert said.count("Answer to: where is send?") == 1
            assert len(world.agent.asked) == 1
        if not frozen.is_set():
            break

    assert killed >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_kill_at_any_call_leaves_one_answer_after_a_choice(tmp_path: Path, after: bool) -> None:
    killed = 0
    for at in range(1, 20):
        world = FakeWorld(tmp_path / f"{at}.sqlite")
        have(world, "shop", "website")
        async with world.running():
            frozen = world.platform.freeze(at, after=after)
            await world.mention("where is send?")
            killed += await _killed(world, frozen, "Which repository")
            await until(world, lambda said: len(said) == 1 and "Which repository" in said[0])
            await world.choose("website")
            killed += await _killed(world, frozen)
            (said,) = await until(world, lambda said: len(said) == 1 and "website at" in said[0])
            assert said.startswith("Answer to: where is send?")
            assert len(world.agent.asked) == 1
        if not frozen.is_set():
            break

    assert killed >= 3


async def _killed(world: FakeWorld, frozen: asyncio.Event, settled: str = "website at") -> bool:
    """Wait for a call that hangs, or for what is said at the end; kill and begin again in the first case."""
    had_frozen = frozen.is_set()
    await until(world, lambda said: (frozen.is_set() and not had_frozen) or any(settled in each for each in said))
    if had_frozen or not frozen.is_set():
        return False
    await world.crash()
    await world.begin()
    return True


async def test_each_place_is_cited_at_the_commit_of_its_repository(tmp_path: Path) -> None:
    commits, tables = {}, []
    for name in ("shop", "website"):
        repo = GitRepo(tmp_path / name)
        repo.write(f"src/{name}.py", f"def parse_date(text):\n    return {name!r} + text\n")
        commits[name] = repo.commit()
        tables.append(RepositoryTable(path=tmp_path / name, web_url=f"https://git.example.com/team/{name}"))
    settings = Settings(home=tmp_path / "home", repositories=tuple(tables), model="none")
    platform = FakePlatform(SystemClock(), replace(ABLE, max_units=8_000))
    async with (
        TeamApp.open(settings, tmp_path, Unseen()) as team,
        open_conversations(
            team.agent, team.stock.library, store=open_database(tmp_path / "i.sqlite"),
            policy=make_chat_policy(settings, team),
        ) as conversations,
        conversations.open(),
        conversations.connect_platform("fake", platform),
    ):  # fmt: skip
        await conversations.receive(message("across shop and website, where is parse_date defined?"))
        await wait_until(
            lambda: any("website at" in each.content.footer for each in platform.messages.values()),
            "an answer about the website",
        )

    (shown,) = platform.messages.values()
    text = shown.content.text
    assert "`parse_date` is defined in 2 places" in text
    assert "`shop/src/shop.py`" in text
    assert f"https://git.example.com/team/shop/blob/{commits['shop']}/src/shop.py#L1" in text
    assert f"https://git.example.com/team/website/blob/{commits['website']}/src/website.py#L1" in text
    assert f"shop at {commits['shop'][:7]}" in shown.content.footer
