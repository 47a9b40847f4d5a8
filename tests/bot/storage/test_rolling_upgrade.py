"""A process of the version before works beside one of this version, over one database that the latter has upgraded.

What the older one does is frozen in `layouts/program_6.json`: the statements with which the program of layout 6 stores,
claims and ends messages, holds leases and switches indexes, and what it writes in them and in jobs. A layout that takes
something away from them, or a claim that they do not see, fails here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from psycopg import AsyncConnection

from agent import PostgresDatabase, Schema
from agent.persistence.migrations import migrate_postgres
from bot.clock import SystemClock
from bot.jobs.job_queue import open_job_queue
from bot.jobs.queued_jobs import QueuedAnswerJobs
from bot.storage.database import load_postgres_schema, open_postgres
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.leases import Leases
from bot.storage.manifest_table import ManifestTable
from tests.bot.chat import handle, message
from tests.fakes.postgres import make_database
from tests.indexer.segments.test_manifest_contract import FIRST, make_next, publish
from tests.waiting import expect

pytestmark = pytest.mark.needs("postgres")

OLD: dict[str, Any] = json.loads((Path(__file__).parent / "layouts" / "program_6.json").read_text(encoding="utf-8"))
OLD_LAYOUT = 6
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"  # of a claim, by its conversation
NOW = 1_700_000_000.0


@dataclass(frozen=True, kw_only=True)
class OldProcess:
    """Does what the older program does."""

    connection: AsyncConnection[tuple[Any, ...]]

    async def run(self, what: str, *, lock: str = "", **values: Any) -> list[tuple[Any, ...]]:
        """Run one of its statements; return the rows, or as many empty ones as were changed."""
        sql = re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", OLD["statements"][what].replace("%", "%%"))
        async with self.connection.transaction():
            if lock:
                await self.connection.execute(LOCK, [lock])
            cursor = await self.connection.execute(sql, values)
            return await cursor.fetchall() if cursor.description else [()] * cursor.rowcount

    async def store(self, number: str) -> int:
        """Store a message of a conversation of its own; return its id."""
        body = json.dumps(OLD["body"] | {"id": number})
        key = {"platform": "fake", "workspace": "W", "channel": "C", "message": number}
        run = number.rjust(32, "0")
        rows = await self.run("store", **key, conversation=f"c{number}", body=body, run_id=run, now=NOW)
        return int(rows[0][0])

    async def claim(self, number: int, conversation: str) -> dict[str, Any] | None:
        """Claim a message; return what its holder shows for all it does."""
        values: dict[str, Any] = {"owner": "old", "seconds": 30.0, "now": NOW, "id": number, "beside": 0, "risky": 1}
        rows = await self.run("claim", lock=conversation, **values)
        return {"id0": rows[0][0], "token0": rows[0][7], "run0": rows[0][4]} if rows else None

    async def settle(self, claim: dict[str, Any]) -> bool:
        """End a message."""
        erased = json.dumps(OLD["erased"])
        return bool(await self.run("settle", state="settled", now=NOW, erased=erased, **claim))


@dataclass(frozen=True, kw_only=True)
class Team:
    """The two processes, and the database as the newer one has it."""

    old: OldProcess
    url: str
    database: PostgresDatabase
    inbox: Inbox


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[OldProcess]:
    async with await AsyncConnection.connect(url, autocommit=True, prepare_threshold=None) as connection:
        yield OldProcess(connection=connection)


@pytest_asyncio.fixture
async def team() -> AsyncIterator[Team]:
    """Lay out the tables as the older program did, let it store and claim a message, and then start the newer one."""
    schema = load_postgres_schema()
    steps = {number: sql for number, sql in schema.steps.items() if number <= OLD_LAYOUT}
    async with make_database() as url, connect(url) as old:
        await migrate_postgres(old.connection, Schema(name=schema.name, steps=steps))
        assert await old.claim(await old.store("0"), "c0") is not None
        async with open_postgres(url) as database:
            yield Team(old=old, url=url, database=database, inbox=Inbox(database, SystemClock(), "new"))


async def store(team: Team, number: str) -> InboxEntry:
    stored = await team.inbox.store(message(id=number), f"c{number}")
    assert stored is not None
    return stored


async def end_leases(team: Team) -> None:
    """Let so much time pass that no lease holds any more."""
    await team.database.write("UPDATE inbox SET lease_until = 0")


async def test_what_one_holds_is_left_to_it_by_the_other(team: Team) -> None:
    (held,) = await team.database.rows("SELECT id FROM inbox")  # since before the upgrade
    assert await team.inbox.claim(int(held[0])) is None

    mine = await store(team, "1")
    assert await team.inbox.claim(mine.id) is not None
    assert await team.old.claim(mine.id, "c1") is None
    assert await team.old.run("list", owner="old", beside=1) == []
    assert await team.inbox.list_unfinished() == []


async def test_what_one_takes_in_the_other_answers(team: Team) -> None:
    theirs = await team.old.store("1")
    claimed = await team.inbox.claim(theirs)
    assert claimed is not None
    assert claimed.message.text == OLD["body"]["text"]
    assert await team.inbox.begin_run(claimed)
    assert await team.inbox.note_handles(claimed, [handle()])
    assert await team.inbox.settle(claimed, "settled")

    mine = await store(team, "2")
    claim = await team.old.claim(mine.id, "c2")
    assert claim is not None
    assert await team.old.run("renew", seconds=30.0, **claim) != []
    assert await team.old.run("begin", conversation="c2", now=NOW, **claim) != []
    assert await team.old.run("note", handles="[]", **claim) != []
    assert await team.old.run("hand_on", **claim) != []
    again = await team.inbox.claim(mine.id)
    assert again is not None
    assert again.state == "running"
    assert await team.inbox.settle(again, "settled")
    assert await team.database.rows("SELECT count(*) FROM inbox WHERE state = 'settled'") == [(2,)]


async def test_whoever_lost_a_message_to_the_other_is_refused(team: Team) -> None:
    mine = await store(team, "1")
    stalled = await team.inbox.claim(mine.id)
    assert stalled is not None
    await end_leases(team)
    await team.old.run("expire", owner="old")
    claim = await team.old.claim(mine.id, "c1")
    assert claim is not None
    assert await team.inbox.beat([stalled]) == (frozenset(), frozenset())
    assert not await team.inbox.note_handles(stalled, [handle()])
    assert not await team.inbox.settle(stalled, "settled")

    await end_leases(team)
    await team.inbox.take_expired()
    taken = await team.inbox.claim(mine.id)
    assert taken is not None
    assert await team.old.run("renew", seconds=30.0, **claim) == []
    assert not await team.old.settle(claim)
    assert await team.inbox.settle(taken, "settled")


async def test_a_lease_is_held_by_one_of_the_two(team: Team) -> None:
    leases = Leases(team.database, "new", SystemClock())
    ((token,),) = await team.old.run("take_lease", name="watcher", owner="old", seconds=15.0)
    assert await leases.take("watcher", 15.0) is None
    assert await team.old.run("release_lease", name="watcher", owner="old", token=token) != []

    assert await leases.take("watcher", 15.0) is not None
    assert await team.old.run("take_lease", name="watcher", owner="old", seconds=15.0) == []
    assert await team.old.run("renew_lease", name="watcher", owner="old", token=token, seconds=15.0) == []


async def test_what_one_publishes_the_other_serves_and_goes_on_from(team: Team) -> None:
    manifests = ManifestTable(team.database)
    await team.old.run("pin", repository="shop", holder=FIRST.publication, seconds=60.0)
    fields: dict[str, Any] = {"repository": "shop", "listing": FIRST.listing, "provenance": FIRST.provenance}
    first = {**fields, "version": 1, "publication": FIRST.publication, "status": json.dumps(OLD["status"])}
    assert await team.old.run("switch", **first) == [(1,)]
    assert await team.old.run("unpin", holder=FIRST.publication) != []
    assert await manifests.read("shop") == FIRST

    second = make_next(FIRST)
    assert await publish(manifests, second)
    assert (await team.old.run("read", repository="shop"))[0][1:3] == (2, second.publication)
    assert await team.old.run("switch", **first) == []  # it is overtaken


async def test_a_job_that_one_writes_the_other_carries_out(team: Team) -> None:
    job = "SELECT queue_name, task_name, priority, lock, queueing_lock, args FROM procrastinate_jobs"
    async with open_job_queue(team.url) as queue:
        jobs, carried_out = QueuedAnswerJobs(queue), asyncio.Queue[int]()
        await jobs.ask_for_answer(1, "c1")
        ((*written, args),) = await team.database.rows(job)
        assert (written, args) == (OLD["job"], {"entry_id": 1})  # which the older one carries out

        await team.database.rows(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args) "
            "VALUES (?, ?, ?, ?, ?, CAST(? AS JSONB)) RETURNING id",
            [*OLD["job"][:3], "conversation 2", "message 2", json.dumps({"entry_id": 2})],
        )
        async with (
            jobs.work_on_answers(carried_out.put),
            expect("both jobs are carried out"),
        ):
            assert {await carried_out.get(), await carried_out.get()} == {1, 2}
