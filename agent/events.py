"""The events of a run, and the bus that carries them to its subscribers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

EventKind = Literal[
    "step_start",
    "classified",
    "tool_start",
    "tool_end",
    "token",
    "reset",
    "evidence",
    "flagged",
    "command",
    "goal_check",
    "human_check_required",
    "iteration_complete",
    "goal_end",
    "step_end",
    "model_end",
    "answer",
    "run_end",
    "error",
]

# Events that a slow subscriber must not miss; the rest is progress, and the answer repeats all of its text.
LASTING: frozenset[EventKind] = frozenset({"answer", "goal_end", "run_end", "error", "human_check_required", "reset"})

CLOSING_SECONDS = 3.0  # for a follower to take what is left

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentEvent:
    """One thing that happened in a run; `ts` is in seconds since the epoch.

    Payloads: step_start `node`, `stage`, of a retrieval also `lookup`, `query`; step_end `node`, `changes` (what the
    node wrote to the state); classified `result` (a `Classified`); tool_start `tool`, `call` (an id of this call),
    `args`, and for people `label` (what it does) and `shown` (with what; empty if the tool does not say); tool_end
    `tool`, `ok`, `found`, and the `call` of one that was started; evidence `locations` (a list of `Location`), `urls`
    (where each can be seen at the commit, None if it is nowhere); flagged `source`, `count`, `rules` (passages of
    the evidence that give orders to a model); token `text`; reset `text` (takes the place of all text so far); command
    `line` (what is about to run in the sandbox, as a person would type it); in a goal run goal_check `achieved`,
    `label` (that in a word), `reason`, iteration_complete `decision`, `reason` and goal_end `verdict` (a
    `GoalVerdict`); model_end `model`, `task`, `input_tokens`, `output_tokens`, `cached_tokens`, `seconds`, `error`
    (empty when it went well), `error_type` (the class name), `messages` (what the model was shown), `reply` (its
    message or form, None without one), one for every try; error `message`, `error` (the class name);
    answer `answer` (an `Answer`); run_end `status`, `thread` (the conversation).
    """

    kind: EventKind
    run_id: str
    iteration: int
    ts: float
    payload: Mapping[str, Any]


class Subscription:
    """The events for one subscriber, oldest first. `dropped` counts the progress events that it was too slow for."""

    def __init__(self, run_id: str | None, capacity: int) -> None:
        self.dropped = 0
        self._run_id = run_id
        self._capacity = capacity
        self._events: deque[AgentEvent] = deque()
        self._arrived = asyncio.Event()
        self._is_closed = False

    def close(self) -> None:
        """End the iteration after the queued events."""
        self._is_closed = True
        self._arrived.set()

    def offer(self, event: AgentEvent) -> None:
        """Queue the event if it belongs to the subscribed run."""
        if self._run_id is not None and event.run_id != self._run_id:
            return
        if len(self._events) >= self._capacity and not self._make_room(event):
            self.dropped += 1
            return
        self._events.append(event)
        self._arrived.set()

    def _make_room(self, event: AgentEvent) -> bool:
        if event.kind not in LASTING:
            return False
        stale = next((old for old in self._events if old.kind not in LASTING), None)
        if stale is not None:
            self._events.remove(stale)
            self.dropped += 1
        return True

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> AgentEvent:
        while not self._events:
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()


class AsyncEventBus:
    """Passes every event to every subscriber; a slow one loses progress events, never the end of a run."""

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._subscriptions: list[Subscription] = []

    @contextmanager
    def subscribe(self, run_id: str | None = None) -> Iterator[Subscription]:
        """Listen to one run, or to all of them, for as long as the context is open."""
        subscription = Subscription(run_id, self._capacity)
        self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)

    @asynccontextmanager
    async def follow(self, take_all: Callable[[Subscription], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        """Deliver all events in a separate task while the context is open, up to the last one."""
        with self.subscribe() as events:
            task = asyncio.create_task(take_all(events))
            task.add_done_callback(_log_failure)
            try:
                yield
            finally:
                events.close()
                await asyncio.wait({task}, timeout=CLOSING_SECONDS)
                task.cancel()

    def publish(self, event: AgentEvent) -> None:
        """Pass the event to all subscribers; never waits."""
        for subscription in self._subscriptions:
            subscription.offer(event)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:  # the runs themselves continue
        log.error("Events of runs are not followed any more.", exc_info=error)
