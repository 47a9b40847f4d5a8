"""The contract of leases by name: one process holds a lease, and a dead one no longer than it had taken it for."""

from __future__ import annotations

import asyncio

from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock

NAME = "slack sockets"


async def test_one_of_several_processes_gets_a_lease(open_store: OpenStore) -> None:
    async with open_store() as one, open_store() as two:
        leases = [(one, two)[number % 2].open_leases(f"process {number}") for number in range(8)]

        taken = await asyncio.gather(*(each.take(NAME, 30.0) for each in leases))

    assert len([lease for lease in taken if lease is not None]) == 1


async def test_leases_of_other_names_are_others(store: ChatStore) -> None:
    assert await store.open_leases("here").take("shop", 30.0) is not None
    assert await store.open_leases("there").take("website", 30.0) is not None


async def test_a_lease_of_a_dead_process_ends_with_its_term(store: ChatStore, clock: FakeClock) -> None:
    here, there = store.open_leases("here"), store.open_leases("there")
    first = await here.take(NAME, 30.0)
    assert first is not None
    await clock.advance(29.0)
    assert await there.take(NAME, 30.0) is None

    await clock.advance(2.0)
    second = await there.take(NAME, 30.0)

    assert second is not None
    assert second.token > first.token
    assert not await here.renew(first)


async def test_a_lease_that_is_renewed_lasts(store: ChatStore, clock: FakeClock) -> None:
    here, there = store.open_leases("here"), store.open_leases("there")
    lease = await here.take(NAME, 30.0)
    assert lease is not None
    for _ in range(3):
        await clock.advance(20.0)
        assert await here.renew(lease)

    assert await there.take(NAME, 30.0) is None


async def test_a_holder_that_comes_late_goes_on_where_nobody_was_faster(store: ChatStore, clock: FakeClock) -> None:
    here = store.open_leases("here")
    lease = await here.take(NAME, 30.0)
    assert lease is not None
    await clock.advance(100.0)

    assert await here.renew(lease)
    assert await store.open_leases("there").take(NAME, 30.0) is None


async def test_a_lease_that_was_given_back_is_free_at_once_and_its_tokens_go_on(store: ChatStore) -> None:
    here, there = store.open_leases("here"), store.open_leases("there")
    first = await here.take(NAME, 30.0)
    assert first is not None
    await here.release(first)

    second = await there.take(NAME, 30.0)
    await here.release(first)

    assert second is not None
    assert second.token > first.token
    assert await here.take(NAME, 30.0) is None
    assert await there.renew(second)


async def test_a_process_that_takes_its_lease_again_has_a_new_token(store: ChatStore) -> None:
    here = store.open_leases("here")
    first, second = await here.take(NAME, 30.0), await here.take(NAME, 30.0)

    assert first is not None
    assert second is not None
    assert second.token > first.token
    assert not await here.renew(first)
