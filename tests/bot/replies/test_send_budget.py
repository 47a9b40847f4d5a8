"""The send budget: never more than the platform allows, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import dataclasses
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from bot.messages import RateLimit
from bot.questions.answer_run import AnswerQueue
from bot.replies.send_budget import SendBudget
from tests.bot.chat import PLACE
from tests.fakes.clock import FakeClock
from tests.waiting import wait_for, wait_for_end


async def taken(budget: SendBudget, clock: FakeClock, times: list[float], *, urgent: bool = False) -> None:
    await budget.take("edit", PLACE, urgent=urgent)
    times.append(clock.now())


@given(st.integers(1, 8), st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=30))
@trying(max_examples=50)
def test_no_window_holds_more_calls_than_the_rate(calls: int, arrivals: list[tuple[float, bool]]) -> None:
    async def run() -> list[float]:
        clock, times = FakeClock(), list[float]()
        budget = SendBudget({"edit": RateLimit(calls=calls, seconds=10)}, clock)

        async def one(at: float, urgent: bool) -> None:
            await clock.sleep(at)
            await taken(budget, clock, times, urgent=urgent)

        async def all_of_them() -> None:
            await asyncio.gather(*(one(at, urgent) for at, urgent in arrivals))

        await clock.run(all_of_them())
        return times

    times = asyncio.run(run())
    assert len(times) == len(arrivals)
    assert all(later - earlier >= 10 - 1e-3 for earlier, later in zip(times, times[calls:], strict=False))


async def test_urgent_calls_go_before_others_and_all_wait_their_turn() -> None:
    clock, order = FakeClock(), list[str]()
    budget = SendBudget({"edit": RateLimit(calls=1, seconds=10)}, clock)
    await budget.take("edit", PLACE)

    async def one(name: str, urgent: bool) -> None:
        await budget.take("edit", PLACE, urgent=urgent)
        order.append(name)

    tasks = [asyncio.create_task(one(name, name.startswith("u"))) for name in ("a", "b", "u1", "c", "u2")]
    await clock.advance(60)
    await asyncio.gather(*tasks)

    assert order == ["u1", "u2", "a", "b", "c"]


async def test_who_gives_up_waiting_is_passed_over() -> None:
    clock, times = FakeClock(), list[float]()
    budget = SendBudget({"edit": RateLimit(calls=1, seconds=10)}, clock)
    await budget.take("edit", PLACE)
    first, second = (asyncio.create_task(taken(budget, clock, times)) for _ in range(2))
    await clock.settled()

    first.cancel()
    await clock.advance(10)

    await wait_for(second, "the end of second")
    assert times == [1_010.0]


async def test_nobody_calls_while_the_platform_asks_to_wait() -> None:
    clock, times = FakeClock(), list[float]()
    budget = SendBudget({}, clock)
    budget.hold("edit", PLACE, 30)

    assert not budget.try_take("edit", PLACE)
    await clock.run(taken(budget, clock, times, urgent=True))

    assert times == [1_030.0]
    assert budget.try_take("edit", PLACE)


async def test_the_share_of_each_shrinks_with_the_answers_that_grow() -> None:
    budget = SendBudget({"edit": RateLimit(calls=60)}, FakeClock())
    with budget.count_growing("edit", PLACE), budget.count_growing("edit", PLACE):
        assert budget.pace("edit", PLACE) == pytest.approx(2.2)

    assert budget.pace("edit", PLACE) == 0.0


async def test_slots_are_given_in_the_order_of_asking() -> None:
    slots, order = AnswerQueue(1), list[int]()
    gates = [asyncio.Event() for _ in range(4)]

    async def one(number: int) -> None:
        async with slots.hold_place():
            order.append(number)
            await gates[number].wait()

    tasks = []
    for number in range(4):
        assert slots.before == number
        tasks.append(asyncio.create_task(one(number)))
        await asyncio.sleep(0)
    tasks[1].cancel()
    for gate in gates:
        gate.set()
    await wait_for_end(asyncio.gather(*tasks, return_exceptions=True), "the end of all")

    assert order == [0, 2, 3]
    assert slots.before == 0
    assert all(earlier < later for earlier, later in pairwise(order))


async def test_those_in_line_are_told_when_it_moves() -> None:
    slots, told = AnswerQueue(1), list[tuple[int, int]]()
    gates = [asyncio.Event() for _ in range(4)]

    async def one(number: int) -> None:
        async with slots.hold_place(lambda before: told.append((number, before))):
            await gates[number].wait()

    tasks = [asyncio.create_task(one(number)) for number in range(4)]
    await asyncio.sleep(0)
    gates[0].set()
    await wait_for_end(tasks[0], "the end of the first")
    assert told == [(1, 1), (2, 2), (3, 3), (2, 1), (3, 2)]

    tasks[2].cancel()
    await wait_for_end(tasks[2], "the end of the third")
    assert told[5:] == [(3, 1)]

    gates[1].set()
    gates[3].set()
    await wait_for_end(asyncio.gather(*tasks, return_exceptions=True), "the end of all")
    assert told[6:] == []


async def test_threads_that_are_over_take_no_room() -> None:
    clock = FakeClock()
    budget = SendBudget({"edit": RateLimit(calls=1, seconds=5, per="thread")}, clock)
    for number in range(5_000):
        place = dataclasses.replace(PLACE, thread=str(number))
        with budget.count_growing("edit", place):
            await budget.take("edit", place)
        await clock.advance(0.01)

    assert len(budget._buckets) <= 1_001
    assert budget._growing == {}
