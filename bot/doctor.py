"""What `citebot doctor` has found: each thing that is well or amiss, what to do about it, and how that is told."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.errors import AgentError
from bot.errors import BotError
from bot.lookups import CommandOutcome
from bot.markdown.showing import to_one_line
from bot.records import to_json
from indexer.errors import IndexerError

# A note is what cannot be told, or need not be: nothing is amiss. Citebot works in spite of a warning, less well.
Level = Literal["ok", "note", "warning", "problem"]
_SHORTEST_SECRET = 6  # characters; what is shorter is part of too many words


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorFinding:
    """One thing that was looked at, in a sentence, and what to do about it."""

    level: Level
    what: str
    advice: str = ""


Check = Callable[[], Awaitable[Sequence[DoctorFinding]]]


def ok(what: str) -> DoctorFinding:
    """Something is as it should be."""
    return DoctorFinding(level="ok", what=what)


def note(what: str, advice: str = "") -> DoctorFinding:
    """Something cannot be told, or need not be there."""
    return DoctorFinding(level="note", what=what, advice=advice)


def warning(what: str, advice: str) -> DoctorFinding:
    """Something does not work as well as it could."""
    return DoctorFinding(level="warning", what=what, advice=advice)


def problem(what: str, advice: str = "") -> DoctorFinding:
    """Something does not work. Without advice the sentence itself says what to do."""
    return DoctorFinding(level="problem", what=what, advice=advice)


async def run_checks(checks: Sequence[Check], *, secrets: Collection[str] = ()) -> Sequence[DoctorFinding]:
    """Make all checks side by side, and return what they found in their order; no finding quotes a secret."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_check(check)) for check in checks]
    return [_discreet(finding, secrets) for task in tasks for finding in task.result()]


def format_report(findings: Sequence[DoctorFinding], *, as_json: bool) -> CommandOutcome:
    """Say what was found; it is a success where there is no problem."""
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if as_json:
        found = [dataclasses.asdict(finding) for finding in findings]
        return CommandOutcome(output=to_json({"ok": not problems, "findings": found}), ok=not problems)
    lines = [line for finding in findings for line in _lines(finding)]
    total = f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}."
    return CommandOutcome(output="\n".join([*lines, "", total]), ok=not problems)


async def _run_check(check: Check) -> Sequence[DoctorFinding]:
    """A check that cannot be made is a finding too."""
    try:
        return await check()
    except (BotError, AgentError, IndexerError) as error:
        return [problem(str(error))]
    except OSError as error:
        return [problem(f"The operating system refused something: {error}.", "Put it right and try again.")]


def _discreet(finding: DoctorFinding, secrets: Collection[str]) -> DoctorFinding:
    what, advice = finding.what, finding.advice
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            what, advice = what.replace(secret, "***"), advice.replace(secret, "***")
    return dataclasses.replace(finding, what=what, advice=advice)


def _lines(finding: DoctorFinding) -> Sequence[str]:
    what, advice = to_one_line(finding.what), to_one_line(finding.advice)
    return [f"{finding.level:<9}{what}", *([f"{'':<9}-> {advice}"] if advice else [])]


def _count(number: int, of_what: str) -> str:
    return f"{number or 'no'} {of_what}{'s' * (number != 1)}"
