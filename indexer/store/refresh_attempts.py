"""Remembers the commit being indexed, so that a commit that kills the process is not retried for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import CommitSetAside
from indexer.store.data_folder import map_storage_errors

MAX_DEATHS = 2  # a commit at which so many processes died is not indexed any more


@contextmanager
def note_attempt(file: Path, commit: str, *, full: bool, kept: int = 0) -> Iterator[None]:
    """Note that a commit is being indexed while the context is open; only for the sole writer of the data folder.

    A note that is still there later means that the process died, which begins to count again where it has got further
    than the one before: it has `kept` more. Raises `CommitSetAside` after two deaths, unless a
    person asked for a `full` index.
    """
    deaths = 0 if full else count_deaths(file, commit, kept)
    if deaths >= MAX_DEATHS:
        raise CommitSetAside(
            f"Indexing {commit[:7]} has ended citebot {deaths} times, so it is not tried again. The previous index "
            "stays in use; the next commit will be indexed, and so will this one by `reindex full` or "
            "`citebot index --full`."
        )
    with map_storage_errors(file):
        file.write_text(json.dumps({"commit": commit, "deaths": deaths, "kept": kept}), encoding="utf-8")
    try:
        yield
    finally:
        with map_storage_errors(file):
            file.unlink(missing_ok=True)


def count_deaths(file: Path, commit: str, kept: int = 0) -> int:
    """Count how many processes died while they indexed a commit; an unreadable note counts as none."""
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        if note["commit"] != commit:
            return 0
        return 1 if kept > int(note.get("kept", 0)) else int(note["deaths"]) + 1
    except (OSError, ValueError, KeyError, TypeError):
        return 0
