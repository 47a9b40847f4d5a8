"""Messages that were under way when a process died: each is tried again alone, so that the guilty one is found."""

from __future__ import annotations

from collections.abc import Iterable

from bot.storage.inbox import InboxEntry
from bot.storage.message_states import MAX_DEATHS


def is_suspect(entry: InboxEntry) -> bool:
    """Whether a message may have ended a process; its next try will show it."""
    return 0 < entry.deaths < MAX_DEATHS


class Suspects:
    """The suspects whose turns have not ended here; while there are any, no other question begins.

    They would be suspects themselves if the process died, and one that is innocent could be under way in two deaths.
    """

    def __init__(self) -> None:
        self._suspects: set[int] = set()

    def note(self, entries: Iterable[InboxEntry]) -> None:
        """Note which of the messages that wait to begin are suspects."""
        self._suspects |= {entry.id for entry in entries if is_suspect(entry)}

    def may_begin(self, entry: InboxEntry, *, busy: bool) -> bool:
        """Whether a question may begin now; `busy` says whether something else is under way."""
        if is_suspect(entry):
            return not busy
        return entry.deaths >= MAX_DEATHS or not self._suspects

    def clear(self, entry_id: int) -> bool:
        """Note that a turn has ended here; return whether others may have waited for that."""
        waited_for = bool(self._suspects)
        self._suspects.discard(entry_id)
        return waited_for
