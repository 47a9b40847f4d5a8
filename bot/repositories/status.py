"""The state of each repository, with a sentence, for `citebot status`, the probes and the metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.markdown.formatting import to_one_line
from indexer import IndexerError, IndexStatus, WatchStatus

UNINDEXED = "It is not indexed yet: the first question or `citebot index` indexes it."


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryState:
    """One repository: `current`, `behind`, `not indexed`, `failed`, or what its watcher says; `status` if known."""

    name: str
    state: str
    sentence: str = ""
    status: IndexStatus | None = None

    @property
    def is_usable(self) -> bool:
        """Whether there is a usable index."""
        return self.status is not None and self.status.commit is not None

    @property
    def index_time(self) -> float | None:
        """The time of its indexing, in seconds since the epoch."""
        return self.status.indexed_at if self.status else None

    @property
    def commits_behind(self) -> int | None:
        """The number of missing commits."""
        return self.status.commits_behind if self.status else None

    def record(self, now: float) -> dict[str, Any]:
        """Describe the repository to a probe."""
        return {
            "name": self.name,
            "state": self.state,
            "sentence": self.sentence,
            "commit": self.status.commit if self.status else None,
            "commits_behind": self.commits_behind,
            "age_seconds": round(max(0.0, now - self.index_time), 1) if self.index_time is not None else None,
        }


async def read_state(
    name: str, read: Callable[[], Awaitable[IndexStatus]], watched: Mapping[str, WatchStatus] | None = None
) -> RepositoryState:
    """Read the state of a repository; an unreadable repository has a state too."""
    try:
        status = await read()
    except IndexerError as error:
        return RepositoryState(name=name, state="failed", sentence=to_one_line(str(error)))
    return describe_state(status, (watched or {}).get(name))


def describe_state(status: IndexStatus, watched: WatchStatus | None = None) -> RepositoryState:
    """Describe the state of an index; its watcher's report comes first."""
    make_state = partial(RepositoryState, name=status.repository, status=status)
    if watched is not None and watched.sentence:
        return make_state(state=watched.state, sentence=to_one_line(watched.sentence))
    if status.commit is None:
        return make_state(state="not indexed", sentence=UNINDEXED)
    return make_state(state="behind" if status.commits_behind else "current")
