"""The promises that a transport can break, kept in Slack: with streams over sockets, and with edits over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.adapters.slack.platform import Streaming
from tests.bot.contract import (
    BY_TRANSPORT,
    Promise,
    an_opinion_is_kept,
    the_first_places_are_linked_until_the_answer_begins,
    the_stop_button_ends_the_answer_for_its_asker,
    what_was_written_stays_when_it_is_stopped,
)
from tests.bot.slack_worlds import Mode, SlackWorld
from tests.fakes.slack import FakeSlack

# Replies that grow by edits have a button for stopping, where streams have Slack's own; requests carry presses.
BY_EDITS = (
    the_first_places_are_linked_until_the_answer_begins,
    the_stop_button_ends_the_answer_for_its_asker,
    what_was_written_stays_when_it_is_stopped,
    an_opinion_is_kept,
)


async def try_promise(promise: Promise, path: Path, mode: Mode, streaming: Streaming) -> None:
    """Try a promise in a workspace of its own."""
    async with (
        FakeSlack() as fake,
        SlackWorld(fake, path / "inbox.sqlite", mode=mode, streaming=streaming).running() as world,
    ):
        await promise(world)


@pytest.mark.parametrize("promise", BY_TRANSPORT, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_in_slack_over_sockets(promise: Promise, tmp_path: Path) -> None:
    await try_promise(promise, tmp_path, "socket", "auto")


@pytest.mark.parametrize("promise", BY_EDITS, ids=lambda promise: promise.__name__)
async def test_the_promise_is_kept_in_slack_over_http(promise: Promise, tmp_path: Path) -> None:
    await try_promise(promise, tmp_path, "http", "off")
