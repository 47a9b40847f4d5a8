"""The watchdog: it catches what holds the event loop, says where, and takes nothing else for that."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import threading
import time
from collections.abc import Callable, Coroutine

import pytest

from bot.monitoring.watchdog import WatchedLoop, watch_loop

LIMIT = 0.05


def run(work: Callable[[], Coroutine[None, None, None]], *, limit: float = LIMIT) -> list[float]:
    """Do the work on a watched loop; return how long each stall took."""
    stalls: list[float] = []

    async def watched() -> None:
        with watch_loop(limit=limit, measure=stalls.append):
            await asyncio.sleep(0)
            await work()
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(watched())
    return stalls


def burn(seconds: float) -> None:
    """Use a processor in this thread for that long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    caplog.set_level(logging.WARNING, "bot.monitoring.watchdog")
    return lambda: caplog.text


def test_a_call_that_holds_the_loop_is_measured_and_named(logged: Callable[[], str]) -> None:
    async def work() -> None:
        burn(0.3)

    (stall,) = run(work)

    assert stall >= LIMIT
    assert "the event loop was held for 0." in logged()
    assert re.search(r"test_watchdog.py\", line \d+, in burn", logged())


@pytest.mark.exhaustive
def test_a_call_that_never_lets_others_run_is_caught_as_well(logged: Callable[[], str]) -> None:
    """A pattern holds the interpreter: no other thread runs before it has finished."""

    async def work() -> None:
        re.search(r"(a|aa)+$", "a" * 31 + "b")

    stalls = run(work)

    assert len(stalls) == 1
    assert "<locals>.work\n" in logged()


@pytest.mark.exhaustive
def test_a_long_stall_is_logged_before_it_is_over(logged: Callable[[], str]) -> None:
    seen = threading.Event()

    async def work() -> None:
        while "so far" not in logged():
            burn(0.05)
        seen.set()

    run(work)

    assert seen.is_set()
    assert re.search(r"has been held for \d\.\d s so far; it stood at", logged())
    assert "the event loop is free again after" in logged()


def test_many_stalls_are_measured_and_logged_once(logged: Callable[[], str]) -> None:
    async def work() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            burn(0.1)

    stalls = run(work)

    assert len(stalls) == 5
    assert logged().count("held for") == 1


def test_short_calls_and_waits_are_no_stalls() -> None:
    async def work() -> None:
        for _ in range(200):
            burn(0.001)
            await asyncio.sleep(0)
        await asyncio.to_thread(burn, 0.2)

    assert run(work) == []


def test_a_process_that_does_not_get_to_run_stalls_nothing() -> None:
    async def work() -> None:
        time.sleep(0.2)  # noqa: ASYNC251 - as if the process were stopped, or the machine asleep

    assert run(work) == []


def test_a_collection_of_garbage_is_nobodys_call() -> None:
    kept = [[number] for number in range(200_000)]

    async def work() -> None:
        gc.collect()

    since = time.thread_time()
    gc.collect()
    took = time.thread_time() - since
    assert run(work, limit=took / 2) == []
    assert len(kept) == 200_000


def test_nothing_of_it_is_left_when_it_ends() -> None:
    before = threading.active_count(), len(gc.callbacks)

    run(lambda: asyncio.sleep(0))

    assert (threading.active_count(), len(gc.callbacks)) == before
