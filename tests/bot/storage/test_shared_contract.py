"""The contract of stores of shared answers."""

from __future__ import annotations

from bot.storage.answer_records import SharedAnswer
from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock

SNOWMAN = '{"text": "\N{SNOWMAN}"}'


async def test_an_answer_is_found_after_a_restart_as_it_was_shared_first(
    open_store: OpenStore, clock: FakeClock
) -> None:
    async with open_store() as before:
        await before.shared.share("turn", "web:ann", "where?", SNOWMAN)
        await before.shared.share("turn", "web:bob", "why?", "{}")

    async with open_store() as after:
        assert await after.shared.find("turn") == SharedAnswer(
            id="turn", owner="web:ann", question="where?", answer=SNOWMAN, at=clock.now()
        )
        assert await after.shared.find("other") is None


async def test_an_answer_is_withdrawn_by_its_owner_alone(store: ChatStore) -> None:
    await store.shared.share("turn", "web:ann", "where?", "{}")
    await store.shared.share("other", "web:ann", "why?", "{}")

    await store.shared.withdraw("turn", "web:bob")
    assert await store.shared.find("turn") is not None

    await store.shared.withdraw("turn", "web:ann")
    assert await store.shared.find("turn") is None
    assert await store.shared.find("other") is not None


async def test_what_was_shared_before_a_time_is_forgotten(store: ChatStore, clock: FakeClock) -> None:
    await store.shared.share("old", "web:ann", "where?", "{}")
    await clock.advance(10)
    await store.shared.share("young", "web:ann", "where?", "{}")

    await store.shared.forget_old(clock.now())

    assert await store.shared.find("old") is None
    assert await store.shared.find("young") is not None
