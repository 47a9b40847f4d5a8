"""Runs selected tests in the sandbox, and reads the outcome from their report and the exit code."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.goals.workspace import Workspace
from agent.sandbox.sandbox import Execution, SandboxCommand
from agent.text.escaping import format_count

NO_TESTS, USAGE, NOT_INSTALLED, NO_PYTHON = 5, 4, 97, 127
MAX_FAILURES = 50
_MAX_ID = 500
_MAX_TEXT = 4_000
_LAUNCHER, _FORM, _PROOF = "pytest_launcher.py", "claim_form.py", "claim_proof.py"
_PYTHON = "python=$(command -v python || command -v python3) && "
_RUN_TESTS = f'exec "$python" "$SANDBOX_SUPPORT/{_LAUNCHER}" "$SANDBOX_REPORT" "$@"'
# The proof is written before any test has had the descriptor.
_PROVE = (
    f'if "$python" -I "$SANDBOX_SUPPORT/{_FORM}" "$SANDBOX_REPORT" "$1"; then '
    f'"$python" -I "$SANDBOX_SUPPORT/{_PROOF}" "$SANDBOX_REPORT" "$1" "$2" || exit; fi && shift 2 && '
)
# Fixed settings: caches would be changes of the working copy, and a debugger waits for somebody.
_OPTIONS = ("-p", "no:cacheprovider", "--tb=short", "-q")


@dataclass(frozen=True, kw_only=True, slots=True)
class PytestFailure:
    """A test that did not pass, or a file that could not be collected; `raised` names the exception."""

    id: str
    path: str = ""
    line: int = 0
    message: str = ""
    output: str = ""
    raised: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimProof:
    """Whether the test of a claim shows it to hold, and the executed code; or why it shows nothing."""

    holds: bool
    executed: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PytestRun:
    """The result of a run of pytest. `finished` is the exit code that its report ends with, None without an end.

    `missing` are the modules that could not be imported, and whether files of the repository begin their names.
    """

    exit_code: int | None
    finished: int | None = None
    passed: tuple[str, ...] = ()
    failures: tuple[PytestFailure, ...] = ()
    missing: Mapping[str, bool] = field(default_factory=dict)
    proof: ClaimProof | None = None
    ended: str = ""
    output: str = ""

    @property
    def is_green(self) -> bool:
        """Whether something passed and nothing failed, by the report and by the exit code."""
        return self.exit_code == 0 and self.finished == 0 and bool(self.passed) and not self.failures

    def explain(self) -> str:
        """Explain the result in a sentence or two."""
        if self.exit_code in {NOT_INSTALLED, NO_PYTHON}:
            return (
                "There is no pytest in the sandbox. Prepare an environment with it and with what the tests import, and "
                "name its Python as `python` in the table [sandbox] of citebot.toml."
            )
        if self.exit_code == NO_TESTS:
            return "No tests are selected."
        if self.is_green:
            return f"The run reported that {format_count(len(self.passed), 'test')} passed, and none failed."
        missing = [name for name, is_ours in self.missing.items() if not is_ours]
        imports = f" `import {missing[0]}` fails: the environment of the sandbox does not have it." if missing else ""
        if self.finished is None:
            return f"The run ended before its report did. {self.ended}{imports}"
        failed = ", ".join(f"`{one.id}`" for one in self.failures[:5])
        more = f" and {len(self.failures) - 5} more" if len(self.failures) > 5 else ""
        counted = f"{format_count(len(self.failures), 'failure')}, {len(self.passed)} passed"
        return f"{counted}: {failed}{more}.{imports}" if failed else f"{counted}. {self.ended}{imports}"

    def format_failures(self) -> str:
        """Write the failures in full for a model or a person."""
        return "\n\n".join(
            f"{one.id} ({one.path}:{one.line})\n{one.message}" + (f"\n{one.output}" if one.output else "")
            for one in self.failures
        )


async def run_pytest(workspace: Workspace, select: Sequence[str]) -> PytestRun:
    """Run a selection of tests, given as paths and node ids."""
    return await _run(workspace, select, _PYTHON + _RUN_TESTS)


async def run_claim(workspace: Workspace, file: str, claim: str) -> PytestRun:
    """Run the test of a claim, after finding out whether it shows anything about the repository's code."""
    return await _run(workspace, [file], _PYTHON + _PROVE + _RUN_TESTS, file, claim)


async def _run(workspace: Workspace, select: Sequence[str], script: str, *first: str) -> PytestRun:
    places = [Path(__file__).with_name(name) for name in (_LAUNCHER, _FORM, _PROOF)]
    support = {place.name: await asyncio.to_thread(place.read_bytes) for place in places if place.name in script}
    command = SandboxCommand(argv=("sh", "-c", script, "sh", *first, *_OPTIONS, "--", *select), support=support)
    return read_run(await workspace.run(command, shown=format_pytest_command(select)))


def format_pytest_command(select: Sequence[str]) -> str:
    """Write the command in the form that a person would type."""
    return shlex.join(("python", "-m", "pytest", *select))


def read_run(done: Execution) -> PytestRun:
    """Read the report of a run, ignoring foreign lines."""
    passed: dict[str, None] = {}
    failures: dict[str, PytestFailure] = {}
    missing: dict[str, bool] = {}
    finished: int | None = None
    proof: ClaimProof | None = None
    for line in _iter_lines(done.report):
        match line["kind"]:
            case "test" if line.get("outcome") == "failed":
                failures.setdefault(_read_text(line, "id"), _read_failure(line))
            case "test" if line.get("outcome") == "passed":
                passed[_read_text(line, "id")] = None
            case "collect":
                failures.setdefault(_read_text(line, "id"), _read_failure(line))
            case "import":
                missing[_read_text(line, "name")] = line.get("is_ours") is True
            case "finish":
                finished = line["code"] if isinstance(line.get("code"), int) else None
            case "proof" if proof is None:  # a later one is not ours
                executed = tuple(str(one)[:_MAX_ID] for one in line.get("executed") or ())
                reason = _read_text(line, "reason")
                proof = ClaimProof(holds=line.get("holds") is True, executed=executed, reason=reason)
            case _:
                pass
    return PytestRun(
        exit_code=done.exit_code,
        finished=finished,
        passed=tuple(one for one in passed if one not in failures),
        failures=tuple(failures.values())[:MAX_FAILURES],
        missing=missing,
        proof=proof,
        ended=done.explain(),
        output=done.stdout.text + done.stderr.text,
    )


def _iter_lines(report: bytes) -> Iterator[dict[str, Any]]:
    for line in report.split(b"\n"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and isinstance(record.get("kind"), str):
            yield record


def _read_failure(line: Mapping[str, Any]) -> PytestFailure:
    number = line.get("line")
    return PytestFailure(
        id=_read_text(line, "id"),
        path=_read_text(line, "path"),
        line=number if isinstance(number, int) and 0 <= number < 10_000_000 else 0,
        message=_read_text(line, "message", longest=_MAX_TEXT),
        output=_read_text(line, "output", longest=_MAX_TEXT),
        raised=_read_text(line, "raised"),
    )


def _read_text(line: Mapping[str, Any], name: str, *, longest: int = _MAX_ID) -> str:
    return str(line.get(name) or "")[:longest]
