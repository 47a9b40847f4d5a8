"""The promises of the conversation core: all of them in one process, and some in two, or without edits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.messages import Capabilities
from tests.bot.contract import (
    BY_TWO_PROCESSES,
    CONTRACT,
    Promise,
    a_mention_gets_one_answer,
    an_unclear_question_is_answered_once_its_author_has_chosen,
)
from tests.bot.worlds import FakeWorld, LocalWorld
from tests.fakes.platform import ABLE


async def try_promise(promise: Promise, path: Path, *, able: Capabilities = ABLE, is_split: bool = False) -> None:
    """Try a promise in a world of its own."""
    world = FakeWorld(path / "inbox.sqlite", able=able)
    world.is_split = is_split
    async with world.running():
        await promise(world)


@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_in_the_workspace_of_the_demo(promise: Promise, tmp_path: Path) -> None:
    async with LocalWorld(tmp_path / "inbox.sqlite").running() as world:
        await promise(world)


@pytest.mark.parametrize("promise", BY_TWO_PROCESSES, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_by_a_front_and_an_answerer(promise: Promise, tmp_path: Path) -> None:
    await try_promise(promise, tmp_path, is_split=True)


@pytest.mark.parametrize(
    "promise",
    [a_mention_gets_one_answer, an_unclear_question_is_answered_once_its_author_has_chosen],
    ids=lambda promise: promise.__name__,
)
async def test_the_promise_is_kept_where_no_message_can_be_changed(promise: Promise, tmp_path: Path) -> None:
    await try_promise(promise, tmp_path, able=replace(ABLE, edits=False))
