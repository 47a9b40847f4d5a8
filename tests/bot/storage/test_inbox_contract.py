"""The contract of the inbox: once stored a message is handled once, by one process, across crashes and edits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bot.messages import GoalOrder
from bot.storage.inbox import LEASE_SECONDS, Inbox, InboxEntry
from tests.bot.chat import handle, message
from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock


@pytest.fixture
def inbox(store: ChatStore) -> Inbox:
    return store.open_inbox("here")


@pytest.fixture
def other(store: ChatStore) -> Inbox:
    """The inbox as another process has it."""
    return store.open_inbox("there")


async def stored(inbox: Inbox, conversation: str = "c", **changes: Any) -> InboxEntry:
    entry = await inbox.store(message(**changes), conversation)
    assert entry is not None
    return entry


async def claimed(inbox: Inbox, conversation: str = "c", **changes: Any) -> InboxEntry:
    entry = await inbox.claim((await stored(inbox, conversation, **changes)).id)
    assert entry is not None
    return entry


async def test_a_second_delivery_is_told_apart(inbox: Inbox) -> None:
    assert await inbox.store(message(), "c") is not None
    assert await inbox.store(message(kind="follow_up"), "c") is None
    assert await inbox.store(message(id="2"), "c") is not None


async def test_thirty_deliveries_at_once_store_one_message(inbox: Inbox) -> None:
    entries = await asyncio.gather(*(inbox.store(message(), "c") for _ in range(30)))

    assert len([entry for entry in entries if entry]) == 1


async def test_a_stored_message_comes_back_whole(inbox: Inbox) -> None:
    asked = message("wo ist `größe`? 🎉", roles=("dev",), private=True, external=True, in_thread=True)

    entry = await inbox.store(asked, "c")

    assert entry is not None
    assert entry.message == asked
    assert (entry.state, entry.tries, entry.handles) == ("received", 0, ())


async def test_what_a_person_has_approved_comes_back_whole_and_goes_with_the_text(inbox: Inbox) -> None:
    order = GoalOrder(goal="claim", arguments={"claim": "x"}, task="x", repository="shop", commit="c0", approver="ann")
    await stored(inbox)

    revised = await inbox.revise(message("x", about=("shop",), order=order))
    assert revised is not None
    assert revised.message.order == order

    held = await inbox.claim(revised.id)
    assert held is not None
    assert await inbox.settle(held, "settled")
    (over,) = await all_of(inbox, held)
    assert (over.message.text, over.message.order) == ("", None)


async def all_of(inbox: Inbox, *entries: InboxEntry) -> Sequence[InboxEntry]:
    """The messages as they are now."""
    found = [await inbox.find(entry.message.key) for entry in entries]
    return [entry for entry in found if entry is not None]


async def test_half_a_surrogate_pair_is_stored_as_a_question_mark(inbox: Inbox) -> None:
    assert (await stored(inbox, text="\ud83d?")).message.text == "??"


async def test_one_of_two_processes_claims_a_message(inbox: Inbox, other: Inbox) -> None:
    entry = await stored(inbox)

    claims = await asyncio.gather(inbox.claim(entry.id), other.claim(entry.id))

    assert len([claim for claim in claims if claim]) == 1


async def test_a_conversation_belongs_to_the_process_that_answers_in_it(inbox: Inbox, other: Inbox) -> None:
    first = await claimed(inbox)
    second = await stored(inbox, id="2")

    assert await other.claim(second.id) is None
    assert await other.claim(second.id, beside=True) is not None
    third = await stored(inbox, id="3")
    assert await other.claim(third.id) is None
    await inbox.settle(first, "settled")
    assert await other.claim(third.id) is not None


async def test_a_message_is_free_again_when_its_lease_has_run_out(clock: FakeClock, inbox: Inbox, other: Inbox) -> None:
    entry = await claimed(inbox)
    await clock.advance(LEASE_SECONDS - 1)
    assert await inbox.beat([entry]) == (frozenset({entry.run_id}), frozenset())
    await clock.advance(LEASE_SECONDS - 1)
    assert await other.list_unfinished() == []

    await clock.advance(2)
    (left,) = await other.list_unfinished()
    taken = await other.claim(left.id)

    assert taken is not None
    assert (taken.run_id, taken.tries) == (entry.run_id, 2)
    assert await inbox.beat([entry]) == (frozenset(), frozenset())
    assert not await inbox.settle(entry, "settled")


async def test_what_an_ended_process_held_is_taken_over_at_once(inbox: Inbox, other: Inbox) -> None:
    entry = await claimed(inbox)
    await inbox.note_handles(entry, [handle()])
    assert await other.owners() == ["here"]

    await other.take_from("here")
    taken = await other.claim(entry.id)

    assert taken is not None
    assert taken.handles == (handle(),)


async def test_a_handed_over_message_has_not_been_tried(inbox: Inbox) -> None:
    entry = await claimed(inbox)

    await inbox.release(entry)
    again = await inbox.claim(entry.id)

    assert again is not None
    assert again.tries == 1


async def test_an_edited_message_begins_anew_and_keeps_its_reply(inbox: Inbox) -> None:
    entry = await claimed(inbox)
    await inbox.note_handles(entry, [handle()])

    revised = await inbox.revise(message("and where is receive?"))

    assert revised is not None
    assert (revised.state, revised.message.text, revised.handles) == ("received", "and where is receive?", (handle(),))
    assert revised.run_id != entry.run_id
    assert not await inbox.settle(entry, "settled")


async def test_an_edit_changes_a_message_once_and_not_after_a_later_one(inbox: Inbox, other: Inbox) -> None:
    first, second = (replace(message(f"edit {number}"), edited_at=1_000_000.0 + number / 1000) for number in (1, 2))
    await claimed(inbox)

    assert await inbox.revise(first) is not None
    assert await other.revise(first) is None
    assert await other.revise(second) is not None
    assert await inbox.revise(first) is None
    found = await inbox.find(message().key)
    assert found is not None
    assert (found.message.text, found.message.edited_at) == ("edit 2", second.edited_at)


async def test_an_edit_that_was_known_when_a_message_came_in_changes_nothing(inbox: Inbox) -> None:
    edited = replace(message("edited"), edited_at=5.0)
    await inbox.store(edited, "c")

    assert await inbox.revise(edited) is None


async def test_how_old_a_message_is_goes_by_the_clock_of_leases_and_not_by_that_of_a_process(
    store: ChatStore, clock: FakeClock
) -> None:
    early, late = (Inbox(store.database, FakeClock(at), f"{at}") for at in (0.0, 2_000_000.0))
    stored = await early.store(message(), "c")
    assert stored is not None
    await clock.advance(60)
    claimed_late = await late.claim(stored.id)
    assert claimed_late is not None
    assert (stored.age, claimed_late.age) == (0.0, 60.0)
    await clock.advance(60)

    revised = await late.revise(message("again"))

    assert revised is not None
    assert revised.age == 0.0


async def test_a_run_that_was_begun_is_known_to_whoever_claims_its_message_next(inbox: Inbox, other: Inbox) -> None:
    begun, waiting = await claimed(inbox), await claimed(inbox, "c2", id="2")

    assert await inbox.begin_run(begun)
    await other.take_from("here")

    assert [(await other.claim(entry.id) or entry).state for entry in (begun, waiting)] == ["running", "claimed"]
    assert not await inbox.begin_run(begun)


async def test_what_waits_for_a_person_is_settled_when_its_conversation_goes_on(inbox: Inbox, other: Inbox) -> None:
    asking, elsewhere = await claimed(inbox), await claimed(inbox, "c2", id="2")
    for entry in (asking, elsewhere):
        assert await inbox.settle(entry, "paused")
    reply = await claimed(other, id="3")

    assert [found.state for found in await all_of(inbox, asking, elsewhere)] == ["paused", "paused"]
    assert await other.begin_run(reply)
    assert [found.state for found in await all_of(inbox, asking, elsewhere)] == ["settled", "paused"]


async def test_who_has_lost_a_message_settles_nothing_that_waits_for_a_person(inbox: Inbox, other: Inbox) -> None:
    asking = await claimed(inbox)
    await inbox.settle(asking, "paused")
    reply = await claimed(inbox, id="2")
    await other.take_from("here")
    await other.claim(reply.id)

    assert not await inbox.begin_run(reply)
    assert [found.state for found in await all_of(inbox, asking)] == ["paused"]


async def test_a_message_that_is_over_keeps_no_text(inbox: Inbox) -> None:
    entry = await claimed(inbox)

    assert await inbox.settle(entry, "settled")
    kept = await inbox.find(entry.message.key)

    assert kept is not None
    assert (kept.state, kept.message.text) == ("settled", "")
    assert await inbox.claim(entry.id) is None


async def test_a_deleted_message_is_neither_claimed_nor_revised(inbox: Inbox) -> None:
    entry = await stored(inbox)

    assert await inbox.withdraw(entry.message.key) is not None
    assert await inbox.withdraw(entry.message.key) is None
    assert await inbox.claim(entry.id) is None
    assert await inbox.revise(message("again")) is None


async def test_the_question_of_a_reply_is_found_by_any_part_of_it(inbox: Inbox) -> None:
    entry = await claimed(inbox)
    await inbox.note_handles(entry, [handle("r1"), handle("r2")])

    found = await inbox.find_by_reply(handle("r2"))

    assert found is not None
    assert found.id == entry.id
    assert await inbox.find_by_reply(handle("r3")) is None


async def test_a_process_is_told_what_it_shall_stop(inbox: Inbox, other: Inbox) -> None:
    entry = await claimed(inbox)

    assert await other.ask_to_stop("c")
    assert not await other.ask_to_stop("another")
    assert not await inbox.ask_to_stop("c")
    assert await inbox.beat([entry]) == (frozenset({entry.run_id}), frozenset({entry.run_id}))


async def test_what_is_long_over_is_forgotten(inbox: Inbox, clock: FakeClock) -> None:
    entry = await claimed(inbox)
    await inbox.settle(entry, "settled")
    await stored(inbox, id="2")
    await clock.advance(40 * 86_400)

    assert await inbox.forget_old(clock.now() - 30 * 86_400) == 1

    assert await inbox.find(entry.message.key) is None
    assert len(await inbox.list_unfinished()) == 1


async def test_what_was_stored_is_there_after_the_database_was_opened_again(open_store: OpenStore) -> None:
    async with open_store() as store:
        await stored(store.open_inbox("here"))
    async with open_store() as store:
        inbox = store.open_inbox("later")

        assert [entry.message.text for entry in await inbox.list_unfinished()] == ["where is send?"]
        assert await inbox.store(message(), "c") is None


async def test_a_person_stops_what_they_asked_anywhere_in_a_channel(inbox: Inbox, other: Inbox) -> None:
    mine = await claimed(inbox, "c1", id="1")
    elsewhere = await claimed(inbox, "c2", id="2", author="ben")

    assert await other.ask_to_stop("c3", asked_like=message(id="3"))
    assert not await other.ask_to_stop("c3", asked_like=message(id="3", author="cas"))

    assert await inbox.beat([mine, elsewhere]) == (
        frozenset({mine.run_id, elsewhere.run_id}),
        frozenset({mine.run_id}),
    )


async def test_several_messages_are_held_and_excused_at_once(inbox: Inbox, other: Inbox) -> None:
    held = [await claimed(inbox, f"c{number}", id=str(number)) for number in range(3)]

    await inbox.excuse(held[:2])
    await other.take_from("here")

    assert [entry.deaths for entry in await other.list_unfinished()] == [0, 0, 1]


async def test_channels_are_named_once_the_newest_first(inbox: Inbox, clock: FakeClock) -> None:
    for number, channel in enumerate(("C1", "C2", "C1")):
        await clock.advance(1)
        await stored(inbox, id=str(number), place=replace(message().place, channel=channel))

    assert await inbox.channels("fake", "W", most=5) == ["C1", "C2"]
    assert await inbox.channels("fake", "W", most=1) == ["C1"]


async def test_a_message_with_what_a_database_may_not_hold_is_stored_and_settled(inbox: Inbox) -> None:
    entry = await claimed(inbox, text="a\0b \ud83d 100% ?", author_name="x\0\ud83d")

    assert await inbox.settle(entry, "settled")


async def test_the_store_is_checked_by_writing(inbox: Inbox) -> None:
    await inbox.check()
    await inbox.check()
