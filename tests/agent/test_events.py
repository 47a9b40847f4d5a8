"""The event bus: what a slow listener loses, and what it never loses."""

from __future__ import annotations

import asyncio

from agent.events import AgentEvent, AsyncEventBus, EventKind
from tests.waiting import wait_for


def event(kind: EventKind, run_id: str = "r", number: int = 0) -> AgentEvent:
    return AgentEvent(kind=kind, run_id=run_id, iteration=0, ts=0.0, payload={"number": number})


async def test_a_slow_listener_loses_progress_and_never_the_end() -> None:
    bus = AsyncEventBus(capacity=3)
    with bus.subscribe() as slow:
        for number in range(10):
            bus.publish(event("token", number=number))
        bus.publish(event("answer"))
        bus.publish(event("run_end"))
        heard = [await anext(slow) for _ in range(3)]
    assert [one.kind for one in heard] == ["token", "answer", "run_end"]
    assert slow.dropped == 9


async def test_ends_are_kept_even_when_nothing_else_is_queued() -> None:
    bus = AsyncEventBus(capacity=1)
    with bus.subscribe() as slow:
        bus.publish(event("error"))
        bus.publish(event("answer"))
        assert [(await anext(slow)).kind, (await anext(slow)).kind] == ["error", "answer"]


async def test_each_listener_has_its_own_queue() -> None:
    bus = AsyncEventBus(capacity=2)
    with bus.subscribe() as one, bus.subscribe() as other:
        bus.publish(event("token"))
        assert (await anext(one)) == (await anext(other))


async def test_a_listener_to_one_run_hears_only_that_run() -> None:
    bus = AsyncEventBus()
    with bus.subscribe("mine") as mine:
        bus.publish(event("token", "other"))
        bus.publish(event("answer", "mine"))
        assert (await anext(mine)).run_id == "mine"


async def test_a_listener_waits_for_what_comes_later() -> None:
    bus = AsyncEventBus()
    with bus.subscribe() as listener:
        waiting = asyncio.create_task(listener.__anext__())
        await asyncio.sleep(0)
        bus.publish(event("answer"))
        assert (await wait_for(waiting, "the end of waiting")).kind == "answer"


async def test_one_who_left_hears_nothing_more() -> None:
    bus = AsyncEventBus()
    with bus.subscribe() as gone:
        pass
    bus.publish(event("answer"))
    assert not gone._events
