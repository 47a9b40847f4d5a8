"""The findings of `citebot doctor`: a level, a sentence, and advice."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from agent import AgentError
from bot.errors import BotError
from indexer import IndexerError, describe_error

# A note is no fault: something cannot be determined, or is optional. With a warning, citebot works less well.
Level = Literal["ok", "note", "warning", "problem"]
_MIN_SECRET = 6  # characters; what is shorter is part of too many words


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorFinding:
    """One finding, in a sentence, with advice."""

    level: Level
    what: str
    advice: str = ""


Check = Callable[[], Awaitable[Sequence[DoctorFinding]]]


def make_ok(what: str) -> DoctorFinding:
    """Make the finding that something works."""
    return DoctorFinding(level="ok", what=what)


def note(what: str, advice: str = "") -> DoctorFinding:
    """Make the finding that something is unknown or optional."""
    return DoctorFinding(level="note", what=what, advice=advice)


def make_warning(what: str, advice: str) -> DoctorFinding:
    """Make the finding that something works poorly."""
    return DoctorFinding(level="warning", what=what, advice=advice)


def make_problem(what: str, advice: str = "") -> DoctorFinding:
    """Make the finding of a problem. Without advice, the sentence itself says what to do."""
    return DoctorFinding(level="problem", what=what, advice=advice)


async def run_checks(checks: Sequence[Check], *, secrets: Collection[str] = ()) -> Sequence[DoctorFinding]:
    """Run all checks in parallel, and return their findings in order; no finding quotes a secret."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_check(check)) for check in checks]
    return [_mask_secrets(finding, secrets) for task in tasks for finding in task.result()]


async def _run_check(check: Check) -> Sequence[DoctorFinding]:
    """Run a check; its failure is a finding too."""
    try:
        return await check()
    except (BotError, AgentError, IndexerError) as error:
        return [make_problem(describe_error(error))]
    except OSError as error:
        return [make_problem(f"The operating system refused something: {error}.", "Fix that and try again.")]


def _mask_secrets(finding: DoctorFinding, secrets: Collection[str]) -> DoctorFinding:
    what, advice = finding.what, finding.advice
    for secret in secrets:
        if len(secret) >= _MIN_SECRET:
            what, advice = what.replace(secret, "***"), advice.replace(secret, "***")
    return dataclasses.replace(finding, what=what, advice=advice)
