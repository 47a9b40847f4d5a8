"""Runs in separate tasks: one at a time in a conversation, followed until the answer, ended within two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from agent.errors import STOPPED, UnknownRun
from agent.events import AgentEvent, AsyncEventBus, EventKind
from agent.ports import Answer
from agent.runs.turn_answers import make_unanswered

Run = TypeVar("Run")

STOP_SECONDS = 2.0


class RunTasks:
    """The runs that are in progress in this process, and the bus that they publish to."""

    def __init__(self, events: AsyncEventBus, clock: Callable[[], float]) -> None:
        self._events = events
        self._clock = clock
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._stopped: set[str] = set()

    def is_running(self, run_id: str) -> bool:
        """Whether a run is in progress."""
        return run_id in self._running

    def is_stopped(self, run_id: str) -> bool:
        """Whether somebody has asked a run to stop."""
        return run_id in self._stopped

    def lock(self, thread: str) -> asyncio.Lock:
        """Return the lock of a conversation, which lives as long as somebody holds or awaits it."""
        return self._locks.setdefault(thread, asyncio.Lock())

    def publish(self, run_id: str, kind: EventKind, /, iteration: int = 0, **payload: Any) -> None:
        """Publish an event of a run."""
        self._events.publish(
            AgentEvent(kind=kind, run_id=run_id, iteration=iteration, ts=self._clock(), payload=payload)
        )

    async def stream(
        self, run_id: str, thread: str, answer: Callable[[], Awaitable[Answer]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run in a separate task and yield its events, up to the answer."""
        with self._events.subscribe(run_id) as events:
            task = asyncio.create_task(self._run(run_id, thread, answer))
            self._running[run_id] = task
            try:
                async for event in events:
                    if event.kind == "run_end":
                        break
                    yield event
                    if event.kind == "answer":
                        break
                await task
            finally:
                task.cancel()
                await asyncio.wait({task})
                self._running.pop(run_id, None)
                self._stopped.discard(run_id)

    async def resume(
        self,
        run_id: str,
        thread: str,
        find: Callable[[], Awaitable[Run | None]],
        take: Callable[[Callable[[], Awaitable[Run]]], Awaitable[Answer]],
        *,
        noun: str,
        remedy: str,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Continue a run found in its thread, and look for it again once nothing else is in progress there.

        `take` gets the function that finds it. Raises `UnknownRun`, in the words given, if there is
        nothing to continue.
        """
        if self.is_running(run_id) or await find() is None:
            raise UnknownRun(f"There is no {noun} {run_id[:80]} that could be taken up. {remedy}")

        async def find_again() -> Run:
            run = await find()
            if run is None:
                raise UnknownRun(f"The {noun} {run_id[:80]} was given up meanwhile. {remedy}")
            return run

        async with aclosing(self.stream(run_id, thread, lambda: take(find_again))) as events:
            async for event in events:
                yield event

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds, whatever its state; False if it is not running."""
        task = self._running.get(run_id)
        if task is None:
            return False
        self._stopped.add(run_id)
        await asyncio.sleep(0)  # a task that is cancelled before its first step cannot publish its end
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_SECONDS)
        return True

    async def _run(self, run_id: str, thread: str, take: Callable[[], Awaitable[Answer]]) -> None:
        status = "failed"
        try:
            async with self.lock(thread):
                answer = await take()
            self.publish(run_id, "answer", answer=answer)
            status = answer.route if answer.route in {"failed", "paused"} else "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            if run_id not in self._stopped:
                raise
            status = "stopped"
            self.publish(run_id, "answer", answer=make_unanswered(STOPPED, "stopped"))
        finally:
            self.publish(run_id, "run_end", status=status, thread=thread)
