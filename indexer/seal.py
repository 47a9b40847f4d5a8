"""Notices files that were damaged while nobody had them open, by digests noted when they were last closed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


class Seal:
    """Digests of the files in the subfolders of a folder, kept in a file of that folder.

    It is broken before a change and put on again after the last one, so a process that dies in between leaves none,
    and the files then count as sound.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "seal.json"

    def intact(self) -> bool:
        """Whether the files are those that were sealed, or there is no seal."""
        try:
            noted = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return True
        except ValueError:
            return False
        return bool(noted == self._digests())

    def break_off(self) -> None:
        """Take the seal away, because the files are about to change."""
        self._file.unlink(missing_ok=True)

    def put_on(self) -> None:
        """Seal the files as they are."""
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(self._digests()), encoding="utf-8")
        written.replace(self._file)

    def _digests(self) -> dict[str, str]:
        digests = {}
        for path in sorted(self._folder.glob("*/*")):
            with path.open("rb") as file:
                digests[path.relative_to(self._folder).as_posix()] = hashlib.file_digest(file, "blake2b").hexdigest()
        return digests
