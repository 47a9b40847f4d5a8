"""The inbox: once stored a message is handled once, by one process, across crashes, edits and deletions."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.errors import InboxError
from bot.storage.database import Database, open_database
from bot.storage.inbox import LEASE_SECONDS, Inbox, InboxEntry, is_process_dead, make_process_name
from tests.bot.chat import handle, message
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "home" / "inbox.sqlite") as opened:
        yield opened


@pytest.fixture
def inbox(database: Database, clock: FakeClock) -> Inbox:
    return Inbox(database, clock, "here")


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


async def test_half_a_surrogate_pair_is_stored_as_a_question_mark(inbox: Inbox) -> None:
    assert (await stored(inbox, text="\ud83d?")).message.text == "??"


async def test_one_of_two_processes_claims_a_message(database: Database, clock: FakeClock, inbox: Inbox) -> None:
    other = Inbox(database, clock, "there")
    entry = await stored(inbox)

    claims = await asyncio.gather(inbox.claim(entry.id), other.claim(entry.id))

    assert len([claim for claim in claims if claim]) == 1


async def test_a_conversation_belongs_to_the_process_that_answers_in_it(
    database: Database, clock: FakeClock, inbox: Inbox
) -> None:
    other = Inbox(database, clock, "there")
    first = await claimed(inbox)
    second = await stored(inbox, id="2")

    assert await other.claim(second.id) is None
    assert await other.claim(second.id, beside=True) is not None
    third = await stored(inbox, id="3")
    assert await other.claim(third.id) is None
    await inbox.settle(first, "done")
    assert await other.claim(third.id) is not None


async def test_a_message_is_free_again_when_its_lease_has_run_out(
    database: Database, clock: FakeClock, inbox: Inbox
) -> None:
    other = Inbox(database, clock, "there")
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
    assert not await inbox.settle(entry, "done")


async def test_what_an_ended_process_held_is_taken_over_at_once(
    database: Database, clock: FakeClock, inbox: Inbox
) -> None:
    entry = await claimed(inbox)
    await inbox.note_handles(entry, [handle()])
    other = Inbox(database, clock, "there")
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
    assert not await inbox.settle(entry, "done")


async def test_a_message_that_is_over_keeps_no_text(inbox: Inbox) -> None:
    entry = await claimed(inbox)

    assert await inbox.settle(entry, "done")
    kept = await inbox.find(entry.message.key)

    assert kept is not None
    assert (kept.state, kept.message.text) == ("done", "")
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


async def test_a_process_is_told_what_it_shall_stop(database: Database, clock: FakeClock, inbox: Inbox) -> None:
    entry = await claimed(inbox)
    other = Inbox(database, clock, "there")

    assert await other.ask_to_stop("c")
    assert not await other.ask_to_stop("another")
    assert not await inbox.ask_to_stop("c")
    assert await inbox.beat([entry]) == (frozenset({entry.run_id}), frozenset({entry.run_id}))


async def test_what_is_long_over_is_forgotten(inbox: Inbox, clock: FakeClock) -> None:
    entry = await claimed(inbox)
    await inbox.settle(entry, "done")
    await stored(inbox, id="2")
    await clock.advance(40 * 86_400)

    assert await inbox.forget_old(clock.now() - 30 * 86_400) == 1

    assert await inbox.find(entry.message.key) is None
    assert len(await inbox.list_unfinished()) == 1


async def test_what_was_stored_is_there_after_the_database_was_opened_again(tmp_path: Path, clock: FakeClock) -> None:
    async with open_database(tmp_path / "i.sqlite") as database:
        await stored(Inbox(database, clock, "here"))
    async with open_database(tmp_path / "i.sqlite") as database:
        inbox = Inbox(database, clock, "later")

        assert [entry.message.text for entry in await inbox.list_unfinished()] == ["where is send?"]
        assert await inbox.store(message(), "c") is None


async def test_a_locked_database_becomes_a_sentence(tmp_path: Path, clock: FakeClock) -> None:
    async with open_database(tmp_path / "i.sqlite", busy_seconds=0.01) as database:
        inbox = Inbox(database, clock, "here")
        other = sqlite3.connect(tmp_path / "i.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InboxError, match="Another process holds"):
            await inbox.store(message(), "c")
        other.execute("COMMIT")
        other.close()

        assert await inbox.store(message(), "c") is not None


async def test_a_file_that_is_no_database_becomes_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "i.sqlite").write_bytes(b"no database at all" * 100)

    with pytest.raises(InboxError, match=r"is damaged\. Move it away"):
        async with open_database(tmp_path / "i.sqlite"):
            pass


async def test_a_database_of_another_version_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "i.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(InboxError, match="another version"):
        async with open_database(tmp_path / "i.sqlite"):
            pass


async def test_a_folder_that_cannot_be_made_becomes_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InboxError, match="cannot be made"):
        async with open_database(tmp_path / "file" / "i.sqlite"):
            pass


def test_an_ended_process_is_told_from_a_living_one() -> None:
    own, host = make_process_name(), make_process_name().split("/", maxsplit=1)[0]
    parent = f"{host}/{os.getppid()}/abcd"

    assert is_process_dead(f"{host}/{os.getpid()}/00000000", own)  # the number was given to us since
    assert is_process_dead(f"{host}/4194305/abcd", own)  # beyond any that Linux gives
    assert not is_process_dead(own, own)
    assert not is_process_dead(parent, own)
    assert not is_process_dead("elsewhere/4194305/abcd", own)
    assert not is_process_dead("odd", own)
