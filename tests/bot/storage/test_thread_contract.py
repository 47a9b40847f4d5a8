"""The contract of thread stores: participation, conversation, mute and repository of each thread."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.messages import IncomingMessage
from bot.storage.threads import GOES_ON_SECONDS, ThreadState
from tests.bot.chat import PLACE, message
from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock

HOSTILE = "o'\"; DROP TABLE threads; -- \N{ZERO WIDTH SPACE}ß漢%_"


def follow_up(author: str = "ann", **changes: Any) -> IncomingMessage:
    """A message in the thread that does not name citebot."""
    return message("and who calls it?", kind="follow_up", author=author, in_thread=True, **changes)


def direct(number: str, **changes: Any) -> IncomingMessage:
    """A direct message outside threads; each of them begins a thread of its own."""
    return message(id=number, kind="direct", **({"place": replace(PLACE, thread=number)} | changes))


async def test_whoever_names_citebot_is_answered_anywhere(store: ChatStore) -> None:
    assert await store.threads.should_answer(message())
    assert await store.threads.should_answer(direct("1"))
    assert await store.threads.should_answer(message(kind="command"))
    assert await store.threads.find(PLACE) is None


async def test_a_thread_that_citebot_takes_part_in_is_known_with_its_people(store: ChatStore, clock: FakeClock) -> None:
    conversation = await store.threads.enter(message())

    assert await store.threads.find(PLACE) == ThreadState(
        key=PLACE.key(), conversation=conversation, takes_part=True, people=("ann",), last_at=clock.now()
    )
    assert await store.threads.find(replace(PLACE, thread="2")) is None


async def test_a_follow_up_is_answered_where_citebot_takes_part_alone(store: ChatStore) -> None:
    assert not await store.threads.should_answer(follow_up())
    await store.threads.enter(message())
    assert await store.threads.should_answer(follow_up())
    assert not await store.threads.should_answer(follow_up(mentions_others=True))
    await store.threads.leave(message())
    assert not await store.threads.should_answer(follow_up())


async def test_who_joins_a_thread_keeps_citebot_silent_until_four_messages_later(store: ChatStore) -> None:
    await store.threads.enter(message())

    assert not await store.threads.should_answer(follow_up("ben"))
    assert await store.threads.should_answer(follow_up("eve"), by_anybody=True)
    assert [await store.threads.should_answer(follow_up()) for _ in range(5)] == [False, False, False, True, True]


async def test_a_muted_thread_is_silent_until_it_is_no_longer(store: ChatStore) -> None:
    await store.threads.enter(message())
    await store.settings.mute(follow_up(), muted=True)
    assert not await store.threads.should_answer(follow_up())

    await store.settings.mute(follow_up(), muted=False)
    assert await store.threads.should_answer(follow_up())


async def test_a_thread_belongs_to_one_conversation_for_all_its_messages(store: ChatStore) -> None:
    first = await store.threads.enter(message())

    assert await store.threads.enter(follow_up("ben")) == first
    assert await store.threads.enter(message(place=replace(PLACE, thread="2"))) != first


async def test_what_only_its_author_sees_in_a_channel_is_a_conversation_of_theirs(store: ChatStore) -> None:
    authors = ("ann", "ben", "ann")
    public = await store.threads.enter(message())
    private = [await store.threads.enter(message(author=author, private=True)) for author in authors]

    assert private[0] == private[2]
    assert len({public, *private}) == 3


async def test_direct_messages_go_on_with_the_last_conversation_for_half_an_hour(
    store: ChatStore, clock: FakeClock
) -> None:
    first = await store.threads.enter(direct("1"))
    await clock.advance(GOES_ON_SECONDS)
    assert await store.threads.enter(direct("2")) == first
    await clock.advance(GOES_ON_SECONDS + 1)
    assert await store.threads.enter(direct("3")) != first


async def test_a_repository_is_in_use_in_its_thread_and_elsewhere_in_its_channel(store: ChatStore) -> None:
    in_channel, in_thread = message(), follow_up(place=replace(PLACE, thread="2"))
    assert await store.settings.repository(in_channel) is None

    await store.settings.use(in_channel, "shop")
    await store.settings.use(in_thread, "till")

    assert await store.settings.repository(in_channel) == "shop"
    assert await store.settings.repository(in_thread) == "till"
    assert await store.settings.repository(follow_up(place=replace(PLACE, thread="3"))) == "shop"
    assert await store.settings.repository(message(place=replace(PLACE, channel="D"))) is None


async def test_old_threads_are_forgotten_but_not_what_a_channel_chose(store: ChatStore, clock: FakeClock) -> None:
    await store.settings.use(message(), "shop")
    await clock.advance(100)
    await store.threads.enter(message(place=replace(PLACE, thread="2")))

    assert await store.threads.forget_old(clock.now() - 50) == 1

    assert await store.threads.find(PLACE) is None
    assert await store.threads.find(replace(PLACE, thread="2")) is not None
    assert await store.settings.repository(message()) == "shop"
    assert await store.threads.forget_old(0.0) == 0


@pytest.mark.parametrize("name", [HOSTILE, "", "x" * 100_000], ids=["hostile", "empty", "long"])
async def test_every_name_is_kept_as_it_is(store: ChatStore, name: str) -> None:
    named = message(author=name, place=replace(PLACE, channel=name or "C"))

    await store.threads.enter(named)
    await store.settings.use(named, name)

    thread = await store.threads.find(named.place)
    assert thread is not None
    assert (thread.people, thread.repository) == ((name,), name)


async def test_what_one_process_writes_another_reads_and_a_restart_too(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        conversation = await one.threads.enter(message())
        await other.settings.mute(message(), muted=True)
        assert not await one.threads.should_answer(follow_up())
    async with open_store() as later:
        thread = await later.threads.find(PLACE)
        assert thread is not None
        assert (thread.conversation, thread.muted) == (conversation, True)


async def test_what_several_processes_change_in_a_thread_at_once_is_all_kept(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        for number in range(10):
            place = replace(PLACE, thread=str(number))
            await one.threads.enter(message(place=place))
            await asyncio.gather(
                one.settings.mute(message(place=place), muted=True),
                other.settings.use(follow_up(place=place), "shop"),
                one.threads.leave(message(place=place)),
                other.threads.should_answer(follow_up("ben", place=place)),
            )
            thread = await one.threads.find(place)
            assert thread is not None
            assert (thread.takes_part, thread.muted, thread.repository) == (False, True, "shop")


async def test_all_who_write_in_a_thread_at_once_are_noted(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        for number in range(10):
            place = replace(PLACE, thread=str(number))
            await one.threads.enter(message(place=place))
            answered = await asyncio.gather(
                one.threads.should_answer(follow_up("ben", place=place)),
                other.threads.should_answer(follow_up("eve", place=place)),
            )
            thread = await one.threads.find(place)
            assert thread is not None
            assert not any(answered)
            assert (thread.people[0], sorted(thread.people)) == ("ann", ["ann", "ben", "eve"])


async def test_direct_messages_that_come_at_once_belong_to_one_conversation(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as other:
        for number in range(10):
            channel = replace(PLACE, channel=f"D{number}")
            first, second = (direct(key, place=replace(channel, thread=key)) for key in "12")
            assert len(set(await asyncio.gather(one.threads.enter(first), other.threads.enter(second)))) == 1
