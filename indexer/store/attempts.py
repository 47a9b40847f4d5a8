"""Remembers which commit is being indexed, so that one that ends the process is not tried again for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import CommitSetAside
from indexer.store.data_folder import map_storage_errors

MAX_DEATHS = 2  # a commit at which so many processes died is not indexed any more


@contextmanager
def note_attempt(file: Path, commit: str, *, full: bool) -> Iterator[None]:
    """Note a commit as being indexed for as long as the context is open, by whoever writes to the data folder alone.

    Where the note is found again, the process has died. Raises `CommitSetAside` after two deaths, unless a person has
    asked for a `full` index, which is another chance.
    """
    deaths = 0 if full else count_deaths(file, commit)
    if deaths >= MAX_DEATHS:
        raise CommitSetAside(
            f"Indexing {commit[:7]} has ended citebot {deaths} times, so it is not tried again. What was indexed "
            "before goes on being read; the next commit is indexed, and so is this one by `reindex full` or "
            "`citebot index --full`."
        )
    with map_storage_errors(file):
        file.write_text(json.dumps({"commit": commit, "deaths": deaths}), encoding="utf-8")
    try:
        yield
    finally:
        with map_storage_errors(file):
            file.unlink(missing_ok=True)


def count_deaths(file: Path, commit: str) -> int:
    """Count how many processes died while they indexed a commit; what cannot be read says of none."""
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        return int(note["deaths"]) + 1 if note["commit"] == commit else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0
