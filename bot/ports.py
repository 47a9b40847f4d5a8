"""What the ways of talking to people need from others: an index that can be refreshed, and someone who answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from agent.events import AgentEvent
from agent.ports import CodeSearch
from indexer.models import IndexStatus, Progress, RefreshReport


class Index(Protocol):
    """The index of one repository."""

    async def is_current(self) -> bool:
        """Tell whether HEAD is the commit that is indexed."""

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index HEAD. `progress` is called from another thread; what it raises stops the refresh."""

    async def pin(self) -> CodeSearch:
        """Hold the newest indexed commit; `NotIndexed` before there is one."""

    async def status(self) -> IndexStatus:
        """Describe what is indexed."""


class Assistant(Protocol):
    """Answers questions, remembering what was said in a thread."""

    def ask(self, question: str, *, thread: str, repository: str | None = None) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer; the last event carries the `Answer`."""

    async def forget(self, thread: str) -> None:
        """Drop what was said in the thread."""
