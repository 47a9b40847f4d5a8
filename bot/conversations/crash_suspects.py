"""Messages in progress when a process died: each is retried alone, so that the guilty one is found."""

from __future__ import annotations

from collections.abc import Iterable

from bot.clock import Clock
from bot.storage.inbox import InboxEntry
from bot.storage.message_states import MAX_DEATHS

QUARANTINE_SECONDS = 30.0  # in which only suspects are tried


def is_suspect(entry: InboxEntry) -> bool:
    """Whether a message may have ended a process; its next try will show it."""
    return 0 < entry.deaths < MAX_DEATHS


class Suspects:
    """The suspects without a complete answer; for a limited time, no other question begins while one runs.

    Other questions would become suspects themselves if the process died. Two suspects never run side by side, so that
    an innocent one is not in progress at two deaths. A turn that only delivers a complete answer does not count.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._suspects: set[int] = set()
        self._thinking: set[int] = set()  # the turns here whose answers are not complete
        self._known: set[tuple[int, int]] = set()  # suspects that others have waited for, with their deaths
        self._quarantine_ends = 0.0

    def note(self, waiting: Iterable[InboxEntry]) -> None:
        """Note which of the messages that wait to begin are suspects; those that others have taken are not ours."""
        deaths = {entry.id: entry.deaths for entry in waiting if is_suspect(entry)}
        found = set(deaths)
        if deaths.items() - self._known and not self._suspects:  # not again for one whose place takes no placeholder
            self._quarantine_ends = self._clock.now() + QUARANTINE_SECONDS
        self._known |= deaths.items()
        self._suspects = found | (self._suspects & self._thinking)

    def may_begin(self, entry: InboxEntry) -> bool:
        """Whether a question may begin now."""
        is_over = self._clock.now() >= self._quarantine_ends
        if is_suspect(entry):
            return not (self._thinking & self._suspects if is_over else self._thinking)
        return entry.deaths >= MAX_DEATHS or is_over or not self._suspects

    def begin(self, entry: InboxEntry) -> None:
        """Note that a turn begins here."""
        self._thinking.add(entry.id)
        if is_suspect(entry):
            self._suspects.add(entry.id)

    def conclude(self, entry_id: int) -> bool:
        """Note that a turn thinks no longer; return whether others may have waited for that."""
        may_be_waited_for = bool(self._suspects) and entry_id in self._thinking
        self._suspects.discard(entry_id)
        self._thinking.discard(entry_id)
        return may_be_waited_for
