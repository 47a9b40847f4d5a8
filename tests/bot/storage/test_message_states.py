"""Whatever several processes do to a message in whatever order, only its holder changes it, and it is settled once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import Database
from bot.messages import MessageHandle
from bot.storage.inbox import LEASE_SECONDS, Inbox, InboxEntry
from bot.storage.message_states import HELD, OPEN, EndedState
from tests.bot.chat import handle, message
from tests.bot.storage.conftest import IMPLEMENTATIONS
from tests.fakes.clock import FakeClock
from tests.needs import name_params

PROCESSES = ("ann", "ben", "cas")
# What a process does with the message, by its own newest claim, however stale that is; or what happens to it.
BY_HOLDERS = ("begin", "note", "settle", "pause", "close", "release", "postpone", "beat", "answer", "excuse")
BY_OTHERS = ("claim", "take over", "take expired", "revise", "withdraw", "wait", "wait long", "leave behind")
OFTEN = ("claim", "claim", "claim", "begin", "pause", "wait long", "wait long", "take over")
ENDS: Mapping[str, EndedState] = {"settle": "settled", "pause": "paused", "close": "closed"}
MOVES = st.lists(
    st.tuples(st.sampled_from(PROCESSES), st.sampled_from((*BY_HOLDERS, *BY_OTHERS, *OFTEN))), min_size=15, max_size=40
)

numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One database with its clock and its event loop, for examples that follow each other."""

    database: Database
    clock: FakeClock
    runner: asyncio.Runner

    def walk(self, moves: Sequence[tuple[str, str]]) -> None:
        self.runner.run(Walk(self.database, self.clock).take(moves))


@contextmanager
def open_desk(name: str, folder: Path) -> Iterator[Desk]:
    """Open the database of an implementation."""

    async def enter(stack: AsyncExitStack) -> Database:
        open_store = await stack.enter_async_context(IMPLEMENTATIONS[name](folder, clock))
        return (await stack.enter_async_context(open_store())).database

    clock, stack = FakeClock(1_000.0), AsyncExitStack()
    with asyncio.Runner() as runner:
        database = runner.run(enter(stack))
        yield Desk(database=database, clock=clock, runner=runner)
        runner.run(stack.aclose())


@pytest.fixture(scope="module")
def sqlite_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk("sqlite", tmp_path_factory.mktemp("states")) as opened:
        yield opened


@pytest.fixture(scope="module")
def postgres_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk("postgres", tmp_path_factory.mktemp("states")) as opened:
        yield opened


@pytest.fixture(params=name_params(IMPLEMENTATIONS))
def desk(request: pytest.FixtureRequest) -> Desk:
    opened = request.getfixturevalue(f"{request.param}_desk")
    assert isinstance(opened, Desk)
    return opened


@dataclass
class Model:
    """What the row has to say, kept beside it in the plainest way."""

    state: str = "received"
    run: str = ""
    token: int = 0
    owner: str = ""
    until: float = 0.0
    tries: int = 0
    deaths: int = 0
    under_way: int = 0
    handles: tuple[MessageHandle, ...] = ()
    settled: dict[str, int] = field(default_factory=dict)


class Walk:
    """One message on its way through the moves of an example; every process knows its own newest claim alone."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.clock = clock
        self.database = database
        self.inboxes = {name: Inbox(database, self.clock, name) for name in PROCESSES}
        self.claims: dict[str, InboxEntry] = {}
        self.asked = message(id=f"m{next(numbers)}")
        self.model = Model()

    async def take(self, moves: Sequence[tuple[str, str]]) -> None:
        stored = await self.inboxes["ann"].store(self.asked, f"c:{self.asked.id}")
        assert stored is not None
        self.entry_id, self.model.run = stored.id, stored.run_id
        for who, what in moves:
            if what in BY_HOLDERS:
                if who in self.claims:
                    await self.act_as_holder(who, what, self.claims[who])
            else:
                await self.act(who, what)
            await self.compare()

    async def act_as_holder(self, who: str, what: str, claim: InboxEntry) -> None:
        """Make a move of the holder; the model takes part only where the claim is the newest one."""
        inbox, model = self.inboxes[who], self.model
        is_newest = (claim.token, claim.run_id) == (model.token, model.run)
        holds = is_newest and model.state in HELD and bool(model.owner)
        if what == "note":
            handles = (handle(f"r{inbox.owner}{claim.token}"),)
            await inbox.note_handles(claim, handles)
            model.handles = handles if is_newest else model.handles
        elif what == "answer":
            assert await inbox.still_holds(claim, is_answered=True) == holds
            if holds:
                self.change(until=self.clock.now() + LEASE_SECONDS, deaths=0, under_way=0)
        elif what in ENDS:
            await self.settle(inbox, claim, ENDS[what], holds=holds)
        else:
            await self.go_on(inbox, what, claim, holds=holds)

    async def go_on(self, inbox: Inbox, what: str, claim: InboxEntry, *, holds: bool) -> None:
        """Make a move of the holder that does not end the message."""
        if what == "begin":
            assert await inbox.begin_run(claim) == holds
            if holds:
                self.change(state="running")
        elif what == "release":
            await inbox.release(claim)
            if holds:
                self.change(state=self.freed, owner="", until=0.0, under_way=0, tries=self.model.tries - 1)
        elif what == "postpone":
            await inbox.postpone(claim, 60.0)
            if holds:
                self.change(under_way=0, until=self.clock.now() + 60.0)
        elif what == "beat":
            held, _ = await inbox.beat([claim])
            assert held == ({claim.run_id} if holds else set())
            if holds:
                self.change(until=self.clock.now() + LEASE_SECONDS)
        else:
            await inbox.excuse([claim])
            if holds:
                self.change(under_way=0)

    async def settle(self, inbox: Inbox, claim: InboxEntry, state: EndedState, *, holds: bool) -> None:
        assert await inbox.settle(claim, state) == holds
        if holds:
            self.model.settled[claim.run_id] = self.model.settled.get(claim.run_id, 0) + 1
            self.change(state=state, owner="", until=0.0, under_way=0)

    async def act(self, who: str, what: str) -> None:
        """Make a move that no holder makes."""
        inbox, model = self.inboxes[who], self.model
        if what == "claim":
            await self.claim(who)
        elif what in {"take over", "take expired"}:
            await self.take_away(who, what)
        elif what == "revise":
            revised = await inbox.revise(replace(self.asked, text="in other words"))
            assert (revised is None) == (model.state == "withdrawn")
            if revised is not None:
                assert revised.run_id != model.run
                self.change(state="received", run=revised.run_id, owner="", until=0.0, tries=0, deaths=0, under_way=0)
        elif what == "withdraw":
            assert (await inbox.withdraw(self.asked.key) is None) == (model.state == "withdrawn")
            if model.state != "withdrawn":
                self.change(state="withdrawn", owner="", until=0.0, under_way=0)
        elif what == "leave behind":
            await self.begin_another(inbox)
        else:
            await self.clock.advance(1.0 if what == "wait" else LEASE_SECONDS + 31.0)

    async def take_away(self, who: str, what: str) -> None:
        """Free what another process held: one that is known to have died, or any whose lease is over."""
        inbox, model, dead = self.inboxes[who], self.model, PROCESSES[PROCESSES.index(who) - 1]
        if what == "take over":
            await inbox.take_from(dead)
            is_left = model.owner == dead
        else:
            await inbox.take_expired()
            is_left = model.owner not in {"", who} and model.until < self.clock.now()
        if model.state in HELD and is_left:
            deaths = model.deaths + model.under_way
            self.change(state=self.freed, owner="", until=0.0, deaths=deaths, under_way=0)

    async def begin_another(self, inbox: Inbox) -> None:
        """Begin the run of another message in the conversation, and end it."""
        stored = await inbox.store(message(id=f"m{next(numbers)}"), f"c:{self.asked.id}")
        assert stored is not None
        claimed = await inbox.claim(stored.id, beside=True)
        assert claimed is not None
        assert await inbox.begin_run(claimed)
        assert await inbox.settle(claimed, "settled")
        if self.model.state == "paused":
            self.change(state="settled")

    @property
    def freed(self) -> str:
        """The state that the message is in once nobody holds it."""
        return "running" if self.model.state == "running" else "received"

    async def claim(self, who: str) -> None:
        model, now = self.model, self.clock.now()
        is_free = model.state == "received" or (model.state in HELD and model.until < now)
        claimed = await self.inboxes[who].claim(self.entry_id)
        assert (claimed is not None) == is_free
        if claimed is not None:
            assert claimed.token > model.token
            self.claims[who] = claimed
            self.change(
                state="running" if model.state == "running" else "claimed",
                owner=who,
                until=now + LEASE_SECONDS,
                under_way=1,
                token=claimed.token,
                tries=model.tries + 1,
            )

    def change(self, **changes: Any) -> None:
        self.model = replace(self.model, **changes)

    async def compare(self) -> None:
        """Check that the row is what the model says, and that no run was settled twice."""
        entry = await self.inboxes["ann"].find(self.asked.key)
        assert entry is not None
        row = await self.database.row("SELECT owner, lease_until, under_way FROM inbox WHERE id = ?", (self.entry_id,))
        model = self.model
        assert (entry.state, entry.run_id, entry.token) == (model.state, model.run, model.token)
        assert (entry.tries, entry.deaths, entry.handles) == (model.tries, model.deaths, model.handles)
        assert row == (model.owner, model.until, model.under_way)
        assert 0 <= entry.deaths <= entry.tries
        assert all(times == 1 for times in model.settled.values())
        assert bool(entry.message.text) == (entry.state in OPEN)


@given(moves=MOVES)
def test_only_the_newest_claim_moves_a_message_and_no_run_is_settled_twice(
    sqlite_desk: Desk, moves: Sequence[tuple[str, str]]
) -> None:
    sqlite_desk.walk(moves)


@pytest.mark.needs("postgres")
@settings(max_examples=15)
@given(moves=MOVES)
@pytest.mark.exhaustive
def test_so_it_is_in_postgres(postgres_desk: Desk, moves: Sequence[tuple[str, str]]) -> None:
    postgres_desk.walk(moves)


@pytest.mark.parametrize("what", BY_HOLDERS)
def test_who_wakes_up_too_late_changes_nothing(desk: Desk, what: str) -> None:
    lost = [("ann", "claim"), ("ann", "note"), ("ann", "wait long"), ("ben", "claim"), ("ben", "note")]

    desk.walk([*lost, ("ann", what), ("ben", "beat"), ("ben", "settle"), ("ann", what)])


def test_processes_at_once_settle_each_message_once(desk: Desk) -> None:
    """Three processes claim twenty messages, stall beyond their leases, and settle whenever they wake."""
    clock, settled = desk.clock, dict.fromkeys(range(20), 0)

    async def work(name: str, entries: Sequence[InboxEntry], *, stalls: bool) -> None:
        inbox = Inbox(desk.database, clock, name)
        for place, entry in enumerate(entries):
            claimed = await inbox.claim(entry.id)
            if claimed is None:
                continue
            if stalls and place % 2:
                await clock.advance(LEASE_SECONDS + 1)  # nobody beats meanwhile
            is_over = await inbox.settle(claimed, "settled")
            settled[place] += is_over

    async def run() -> None:
        inbox = Inbox(desk.database, clock, "front")
        stored = [await inbox.store(message(id=f"s{number}"), f"s:{number}") for number in settled]
        entries = [entry for entry in stored if entry is not None]
        await asyncio.gather(*(work(name, entries, stalls=True) for name in PROCESSES for _ in range(3)))
        await clock.advance(LEASE_SECONDS + 1)
        await work("front", entries, stalls=False)

    desk.runner.run(run())

    assert settled == dict.fromkeys(range(20), 1)
