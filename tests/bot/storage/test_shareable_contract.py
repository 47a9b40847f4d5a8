"""The contract of stores of private answers, each of which may be shared once."""

from __future__ import annotations

import asyncio

from bot.messages import Attachment, Button, MessageContent, PlaceLink
from bot.storage.answer_records import ShareableAnswer
from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock

DAY = 86_400.0
ANSWER = ShareableAnswer(
    content=MessageContent(
        text="`pay` is in *pay.py* \N{SNOWMAN}",
        found=(PlaceLink(name="pay.py:1-2", url="https://git.example/shop"),),
        buttons=(Button(action="share", label="Share", value="run"),),
        file=Attachment(name="calls.txt", text="pay <- sell", alt="who calls it"),
    ),
    repositories=("shop", "till"),
)


async def test_an_answer_is_taken_as_it_was_kept(store: ChatStore) -> None:
    await store.shareable.keep("run", "c", ANSWER)

    assert not await store.shareable.is_shared("run")
    assert await store.shareable.take("run") == ANSWER
    assert await store.shareable.is_shared("run")


async def test_of_all_who_share_an_answer_at_once_one_does(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        await one.shareable.keep("run", "c", ANSWER)

        taken = await asyncio.gather(*(store.shareable.take("run") for store in (one, other) * 4))

    assert [each for each in taken if each is not None] == [ANSWER]


async def test_what_was_never_kept_is_not_shared(store: ChatStore) -> None:
    assert await store.shareable.take("run") is None
    assert not await store.shareable.is_shared("run")


async def test_after_a_day_an_answer_can_not_be_shared_any_more(store: ChatStore, clock: FakeClock) -> None:
    await store.shareable.keep("run", "c", ANSWER)
    await clock.advance(DAY + 1)

    assert await store.shareable.take("run") is None


async def test_a_conversation_that_is_forgotten_has_nothing_to_share(store: ChatStore) -> None:
    await store.shareable.keep("run", "c", ANSWER)
    await store.shareable.keep("other", "d", ANSWER)

    await store.shareable.forget("c")

    assert await store.shareable.take("run") is None
    assert await store.shareable.take("other") == ANSWER
