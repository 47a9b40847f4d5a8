"""The promises of the conversation core are kept over Postgres as well, and a question outlives its absence."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.persistence.postgres import database as postgres
from bot.storage.database import open_postgres
from tests.bot.contract import BY_STORE, Promise
from tests.bot.slack_worlds import SlackWorld
from tests.bot.worlds import FakeWorld
from tests.fakes.cut_proxy import open_cut_proxy
from tests.fakes.postgres import make_database, open_clocked_postgres
from tests.fakes.slack import FakeSlack
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("postgres")


@pytest.mark.parametrize("promise", BY_STORE, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_on_postgres(promise: Promise, tmp_path: Path) -> None:
    async with make_database() as url:
        world = FakeWorld(tmp_path / "unused")
        world.open_store = lambda _, clock: open_clocked_postgres(url, clock.now)
        async with world.running():
            await promise(world)
    assert not (tmp_path / "unused").exists()


@pytest.mark.exhaustive
async def test_a_question_waits_while_postgres_is_away_and_is_answered_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says so once, and once that it is over; the place of the answer is the message that was there before."""
    monkeypatch.setattr(postgres, "_CONNECT_SECONDS", 2)
    async with make_database() as url, open_cut_proxy(url) as (proxy, address), FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "unused")
        world.open_store = lambda *_: open_postgres(address)
        world.agent.gate = asyncio.Event()
        async with world.running():
            await world.mention("where is send?")
            await world.agent.begun.acquire()

            proxy.set_mode("refuse")
            proxy.cut()
            world.agent.gate.set()
            await wait_until(lambda: "a message waits for the database" in caplog.text, "a warning")
            assert world.observer.outcomes == ["unsaid"]
            proxy.set_mode("pass")

            await wait_until(lambda: world.observer.outcomes == ["unsaid", "answered"], "an answer")
            (said,) = world.said()
            assert said.startswith("Answer to: where is send?")
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("bot.")]
    assert len([each for each in ours if "cannot be brought up to date" in each]) <= 1
    assert len([each for each in ours if "waits for the database" in each]) == 1
