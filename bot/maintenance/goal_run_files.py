"""The terminal's goal runs, running or interrupted: a file for each, locked by its process."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.errors import GoalRunUnavailable
from bot.storage.data_folder_access import secure_folder

_NAME = re.compile(r"[0-9a-f]{8}")
_ENDING = ".json"


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalRunNote:
    """The data of a run without its checkpoints; `path` is its repository."""

    name: str
    path: str
    task: str


class GoalRunFiles:
    """The files of one data folder; a dying process releases its own."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "goals"

    @contextmanager
    def begin(self, path: str, task: str) -> Iterator[GoalRunNote]:
        """Record a new run, and hold it until the context is closed."""
        secure_folder(self._folder)
        note = GoalRunNote(name=secrets.token_hex(4), path=path, task=task)
        place = self._locate(note.name)
        with place.with_suffix(".new").open("x", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump(asdict(note), file)
            file.flush()
            place.with_suffix(".new").rename(place)  # nobody sees it unlocked
            yield note

    @contextmanager
    def take_up(self, name: str | None, path: str) -> Iterator[GoalRunNote]:
        """Take an interrupted run, by default the last one of a repository; `GoalRunUnavailable` if there is none."""
        note = (
            self._find(name)
            if name is not None
            else next((note for note in self._list(path) if not self._is_alive(note.name)), None)
        )
        if note is None:
            which = f"no goal run {name[:20]!r}" if name is not None else "no goal run of this repository"
            raise GoalRunUnavailable(f"There is {which} that was interrupted. Start one with `citebot goal`.")
        if note.path != path:
            raise GoalRunUnavailable(f"The goal run {note.name} is about {note.path}. Add --repo {note.path}.")
        with self._open(note.name) as descriptor:
            if not _try_lock(descriptor):
                raise GoalRunUnavailable(
                    f"The goal run {note.name} is running in another process. Wait until it has finished."
                )
            yield note

    def remove(self, name: str) -> None:
        """Remove the file of a finished run."""
        self._locate(name).unlink(missing_ok=True)

    def list_alive(self, path: str) -> Sequence[GoalRunNote]:
        """Return the runs of a repository that a process is executing."""
        return [note for note in self._list(path) if self._is_alive(note.name)]

    def drop(self, before: float) -> None:
        """Remove the files of runs interrupted before a time: their checkpoints are swept too."""
        for file in self._folder.glob(f"*{_ENDING}"):
            if _read_time(file) < before and not self._is_alive(file.stem):
                file.unlink(missing_ok=True)

    def _list(self, path: str) -> Iterator[GoalRunNote]:
        """Yield the runs of a repository, the newest first."""
        files = sorted(self._folder.glob(f"*{_ENDING}"), key=_read_time, reverse=True)
        notes = (self._find(file.stem) for file in files)
        return (note for note in notes if note is not None and note.path == path)

    def _find(self, name: str) -> GoalRunNote | None:
        if not _NAME.fullmatch(name):
            return None
        try:
            known = json.loads(self._locate(name).read_text(encoding="utf-8"))
            return GoalRunNote(name=name, path=str(known["path"]), task=str(known["task"]))
        except (OSError, ValueError, KeyError, TypeError):  # it is over meanwhile, or was cut off while it was written
            return None

    def _is_alive(self, name: str) -> bool:
        with suppress(OSError), self._open(name) as descriptor:
            return not _try_lock(descriptor)
        return False

    @contextmanager
    def _open(self, name: str) -> Iterator[int]:
        descriptor = os.open(self._locate(name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _locate(self, name: str) -> Path:
        return self._folder / f"{name}{_ENDING}"


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_time(file: Path) -> float:
    with suppress(OSError):  # it is over
        return file.stat().st_mtime
    return 0.0
