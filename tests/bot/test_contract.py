"""The promises of the conversation core, kept on every platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from tests.bot.contract import CONTRACT, World
from tests.bot.worlds import FakeWorld
from tests.fakes.platform import ABLE, SLACK_LIKE

PLATFORMS = {
    "edits": ABLE,
    "streams": replace(SLACK_LIKE, rates={}),
    "single-posts": replace(ABLE, edits=False),
}
# What needs messages that can be changed.
NEEDS_EDITS = (
    "a_sign_of_life",
    "the_first_places",
    "an_edited_question_is",
    "a_deleted_question_takes",
    "the_stop_button",
    "an_answer_about_several_repositories_is_stopped",
)


@pytest_asyncio.fixture(params=PLATFORMS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    made = FakeWorld(tmp_path / "inbox.sqlite", able=PLATFORMS[request.param])
    await made.begin()
    yield made
    await made.end()


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept(
    world: World, promise: Callable[[World], Awaitable[None]], request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["world"] == "single-posts" and promise.__name__.startswith(NEEDS_EDITS):
        pytest.skip("the platform cannot change messages")

    await promise(world)
