"""Limits questions per person, counted in the database, so that a restart resets nothing.

A person counts as one on their whole platform: in each of its workspaces, in direct messages, and with a token, which
names no workspace. If two workspaces give one id to two people, they share the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent import Database
from bot.clock import Clock
from bot.errors import LimitReached, SilentlyThrottled
from bot.messages import IncomingMessage

_MINUTE, _DAY = 60, 86_400
_COMMANDS = 3  # commands for every question that may be asked
_LOOKUPS = 30  # lookups for every question: an agent makes dozens for one of its own


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionLimits:
    """The limits of one person's questions in a minute and in a day (UTC)."""

    per_minute: int = 10
    per_day: int = 300


class QuestionCounter:
    """The table `usage`."""

    def __init__(self, database: Database, clock: Clock, limits: QuestionLimits) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits

    async def forget_old(self) -> None:
        """Drop the counts of past minutes and days."""
        await self._database.write("DELETE FROM usage WHERE ends < ?", (self._clock.now(),))

    async def count(self, message: IncomingMessage) -> None:
        """Count a question; raises `LimitReached` for one too many, `SilentlyThrottled` after as many refusals."""
        limits = ((_MINUTE, self._limits.per_minute, "minute"), (_DAY, self._limits.per_day, "day"))
        for seconds, most, name in limits:
            left = await self._increment_count(message, seconds)
            if left > most:
                wait = self._wait_for_next(seconds)
                flooded = left > 2 * most and message.kind != "command"  # the reply to a command keeps nobody waiting
                kind = SilentlyThrottled if flooded else LimitReached
                sentence = f"You have asked {most} questions this {name}. Ask again in {_format_duration(wait)}."
                raise kind(sentence, retry_after=wait)

    async def count_command(self, message: IncomingMessage) -> None:
        """Count a command; raises `SilentlyThrottled` at several times the limit of questions."""
        most = _COMMANDS * self._limits.per_minute
        if await self._increment_count(message, _MINUTE, "commands:") > most and message.kind != "command":
            sentence = f"You have given me more than {most} commands this minute."
            raise SilentlyThrottled(sentence, retry_after=self._wait_for_next(_MINUTE))

    async def count_lookup(self, message: IncomingMessage) -> None:
        """Count a program's lookup in the code; raises `LimitReached` at many times the limit of questions."""
        most = _LOOKUPS * self._limits.per_minute
        if await self._increment_count(message, _MINUTE, "lookups:") > most:
            wait = self._wait_for_next(_MINUTE)
            sentence = f"You have looked up {most} things this minute. Try again in {_format_duration(wait)}."
            raise LimitReached(sentence, retry_after=wait)

    def _wait_for_next(self, seconds: int) -> float:
        return seconds - self._clock.now() % seconds

    async def _increment_count(self, message: IncomingMessage, seconds: int, what: str = "") -> int:
        number = int(self._clock.now() // seconds)
        row = await self._database.row(
            "INSERT INTO usage (person, period, ends, count) VALUES (?, ?, ?, 1) "
            "ON CONFLICT (person, period) DO UPDATE SET count = usage.count + 1 RETURNING count",
            (
                f"{message.place.platform}:{message.author}",
                f"{what}{seconds}:{number}",
                (number + 1) * seconds,
            ),
        )
        return int(row[0]) if row else 0


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{round(seconds / 3_600)} hours"
