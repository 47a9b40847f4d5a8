"""What people thought of answers, with how those came about: for `citebot feedback`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.clock import Clock
from bot.database import open_database
from bot.lookups import CommandOutcome
from bot.markdown.showing import to_one_line
from bot.records import to_json
from bot.turn_records import FeedbackEntry, TurnRecordStore

DAY = 86_400.0


async def export_feedback(path: Path, clock: Clock, *, days: int | None, as_json: bool) -> CommandOutcome:
    """List the opinions of the last days, or all, oldest first, from the database at a path.

    Who gave them stays there, and so does the question: citebot keeps none once it is answered.
    """
    since = clock.now() - days * DAY if days is not None else 0.0
    found = await _opinions(path, clock, since)
    note = "" if found else "Nobody has rated an answer" + (f" in the last {days} days." if days else " yet.")
    rows = [feedback_to_record(each) for each in found] if as_json else [format_feedback(each) for each in found]
    output = to_json({"feedback": rows}) if as_json else "\n".join(map(str, rows))
    return CommandOutcome(output=output, note=note, ok=bool(found))


async def _opinions(path: Path, clock: Clock, since: float) -> Sequence[FeedbackEntry]:
    if not await asyncio.to_thread(path.is_file):
        return ()
    async with open_database(path) as database:
        records = TurnRecordStore(database, clock)
        await records.open()
        return await records.feedback(since=since)


def feedback_to_record(feedback: FeedbackEntry) -> dict[str, Any]:
    """Describe an opinion; of a turn that was forgotten nothing but the opinion is left."""
    turn = feedback.record
    return {
        "rating": feedback.opinion,
        "at": datetime.fromtimestamp(feedback.at, UTC).isoformat(timespec="seconds"),
        "turn": feedback.run_id,
        "repository": turn.repository if turn else None,
        "commit": turn.commit if turn else None,
        "route": turn.route if turn else None,
        "model": turn.model if turn else None,
        "seconds": round(turn.seconds, 3) if turn else None,
        "searched": list(turn.searched) if turn else None,
        "files": list(turn.files) if turn else None,
    }


def format_feedback(feedback: FeedbackEntry) -> str:
    """Write an opinion on one line: when, which, on what, and how the answer came about."""
    when = f"{datetime.fromtimestamp(feedback.at).astimezone():%Y-%m-%d %H:%M}"
    turn = feedback.record
    if turn is None:
        return f"{when}  {feedback.opinion:<4}  (forgotten)"
    where = f"{to_one_line(turn.repository) or 'no repository'}{f' at {turn.commit[:7]}' if turn.commit else ''}"
    return f"{when}  {feedback.opinion:<4}  {where}  {turn.route}  {to_one_line(turn.model or 'no model')}"
