"""The clock that LangGraph takes the ids of checkpoints from, as a process on another machine has it."""

from __future__ import annotations

import time
from types import SimpleNamespace, TracebackType
from typing import Any, Self, cast

from langgraph.checkpoint.base import id as library


class IdClock:
    """Within its context, ids are those of a process whose clock is so many seconds ahead."""

    def __init__(self, seconds: float) -> None:
        self._ahead = int(seconds * 1e9)
        self._last: int | None = None
        self._generator = cast("Any", library)

    def __enter__(self) -> Self:
        self._before = self._generator.time, self._generator._last_v6_timestamp
        self._generator.time = SimpleNamespace(time_ns=lambda: time.time_ns() + self._ahead)
        self._generator._last_v6_timestamp = self._last
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._last = self._generator._last_v6_timestamp
        self._generator.time, self._generator._last_v6_timestamp = self._before
