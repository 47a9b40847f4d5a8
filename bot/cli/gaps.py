"""`citebot gaps`: unanswered questions, the reasons, and the owners of the nearest places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bot.adapters.terminal import output
from bot.adapters.terminal.output import CommandOutcome
from bot.app import App
from bot.cli.upkeep import DAY, open_questions
from bot.clock import Clock
from bot.markdown import to_one_line
from bot.settings import Settings
from bot.storage.turn_records import KeptTurn
from indexer import IndexerError

MAX_TURNS = 10_000
MAX_PLACES = 3  # places that are named

_ASKED = frozenset({"fast_path", "broad", "failed"})  # routes of what is about the code; "hello" has another one


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A question that could not be answered; `owners` are those of its nearest files, by path."""

    turn: KeptTurn
    reason: str
    owners: dict[str, tuple[str, ...]] = field(default_factory=dict)


async def report_gaps(
    settings: Settings,
    clock: Clock,
    opening: Sequence[Callable[[], AbstractAsyncContextManager[App]]],
    *,
    days: int,
    as_json: bool,
) -> CommandOutcome:
    """Report unanswered questions of the last days, by repository, newest first."""
    turns: Sequence[KeptTurn] = ()
    disliked: set[str] = set()
    async with open_questions(settings, clock) as records:
        if records is not None:
            since = clock.now() - days * DAY
            turns = [one for one in await records.recent(since=since, most=MAX_TURNS) if one.record.route in _ASKED]
            disliked = {one.run_id for one in await records.feedback(since=since) if one.opinion == "bad"}
    reasons = ((turn, _find_reason(turn, is_disliked=turn.run_id in disliked)) for turn in turns)
    gaps = [Gap(turn=turn, reason=reason) for turn, reason in reasons if reason]
    notes = await _add_owners(gaps, opening)
    if not settings.keep_question_days:
        notes.append("`keep_question_days` is 0, so no question is kept with these.")
    if as_json:
        record = {"days": days, "asked": len(turns), "gaps": [_to_record(gap) for gap in gaps]}
        return CommandOutcome(output=output.to_json(record), note="\n".join(notes))
    total = f"{len(gaps):,} of {len(turns):,} questions of the last {days} days were not answered, or not well."
    return CommandOutcome(output="\n".join([total, *_format_gaps(gaps)]), note="\n".join(notes if gaps else ()))


def _find_reason(turn: KeptTurn, *, is_disliked: bool) -> str:
    """Explain why a question counts as unanswered; empty if it does not."""
    record = turn.record
    if record.route == "failed":
        return "the run failed"
    if record.found is False:
        return "no place clearly answers it" if record.files else "nothing was found"
    return "its answer was rated bad" if is_disliked else ""


async def _add_owners(
    gaps: Sequence[Gap], opening: Sequence[Callable[[], AbstractAsyncContextManager[App]]]
) -> list[str]:
    """Look up the owners of the nearest files of questions about one repository; return the problems."""
    notes: list[str] = []
    for open_app in opening:
        try:
            async with open_app() as app:
                name = (await app.index.status()).repository
                if not (own := [gap for gap in gaps if gap.turn.record.names == (name,)]):
                    continue
                past = (await app.index.pin()).past
                for gap in own:
                    for path in gap.turn.record.files[:MAX_PLACES]:
                        owners = await past.owners(path)
                        gap.owners[path] = owners.owners if owners is not None else ()
        except IndexerError as error:
            notes.append(f"Owners are missing: {error}")
    return notes


def _to_record(gap: Gap) -> Mapping[str, object]:
    record = gap.turn.record
    return {
        "at": datetime.fromtimestamp(gap.turn.at, UTC).isoformat(timespec="seconds"),
        "turn": gap.turn.run_id,
        "repositories": list(record.names),
        "reason": gap.reason,
        "question": record.question or None,
        "nearest": [{"path": path, "owners": gap.owners.get(path, ())} for path in record.files[:MAX_PLACES]],
    }


def _format_gaps(gaps: Sequence[Gap]) -> Sequence[str]:
    by_repository: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        by_repository[", ".join(gap.turn.record.names) or "no repository"].append(gap)
    lines: list[str] = []
    for name, own in sorted(by_repository.items(), key=lambda item: -len(item[1])):
        lines += ["", f"{to_one_line(name)}: {len(own)}"]
        for gap in own:
            question = f": {to_one_line(gap.turn.record.question)}" if gap.turn.record.question else ""
            lines.append(f"  {datetime.fromtimestamp(gap.turn.at).astimezone():%Y-%m-%d}  {gap.reason}{question}")
            for path in gap.turn.record.files[:MAX_PLACES]:
                owners = to_one_line(" ".join(gap.owners.get(path, ())))
                lines.append(f"{'':<14}{to_one_line(path)}{f'  owned by {owners}' if owners else ''}")
    return lines
