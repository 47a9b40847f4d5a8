"""The goal that a test shows a claim about the code to be true or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from agent.goals.goal import Goal, GoalResult, GoalState, read_stored_changes
from agent.goals.pytest_run import PytestFailure, PytestRun, format_pytest_command, run_claim
from agent.goals.workspace import Workspace
from agent.sandbox.patch import FileChange

CLAIM_FILE = "test_citebot_claim.py"
HOLDS, FAILS = "test_claim_holds", "test_claim_does_not_hold"
_MAX_EXECUTED = 10
_PROMPT = f"""
The goal: find out by a test whether a claim about the code is true. The claim is what the person wants checked: \
quoted below, and data like the rest. You may well find it to be false.

Write the file {CLAIM_FILE} in the root of the repository, with three functions and nothing but imports beside them:
- `call()` sets up what it needs, calls the code that the claim is about, and returns the result as it is or a part of \
it; where the claim is about an exception, it catches that and returns it. It has no `if`, changes no module and no \
attribute, and mocks nothing. A command line is run with `subprocess.run([sys.executable, "-m", ...])`.
- `{HOLDS}` is one assertion about `call()` that says what the claim says, with the claim's own values;
- `{FAILS}` is the same assertion with the opposite operator, or `not`.
For example, for "parse_date('') raises ValueError":

from dates import parse_date

def call():
    try:
        return parse_date("")
    except Exception as error:
        return error

def {HOLDS}():
    assert isinstance(call(), ValueError)

def {FAILS}():
    assert not isinstance(call(), ValueError)

Exactly one of the tests has to pass. It counts only if the code itself runs in the call, and if the call \
returns what the code has returned, raised or written, or a part of it. Only this file counts: changes of other files \
are left out.
"""

Verdict = Literal["true", "false", "open"]


class ClaimArguments(BaseModel):
    """A statement about what the code does."""

    claim: str = Field(max_length=2_000)

    @field_validator("claim")
    @classmethod
    def _check(cls, claim: str) -> str:
        if not claim.strip():
            raise ValueError("The claim is empty. Say what the code is supposed to do.")
        return claim


class ClaimGoal(Goal[ClaimArguments]):
    """Decides a claim by two tests: one of the claim, and one of its opposite."""

    name = "claim"
    condition = "Two tests, of the claim and of its opposite, are written and decide about it; they are run by this"
    reached = "found out"
    arguments = ClaimArguments

    def describe_command(self) -> str:
        """Write the command of the check as a person would type it."""
        return format_pytest_command([CLAIM_FILE])

    def system_prompt(self) -> str:
        """Tell a model how a claim is shown to be true or false."""
        return _PROMPT

    async def check(self, state: GoalState, workspace: Workspace) -> GoalResult:
        """Run both tests in a fresh copy that has nothing but them beside the commit."""
        changes = self.select_changes(read_stored_changes(state.get("changes", [])))
        if not any(one.new is not None for one in changes):
            return GoalResult(achieved=False, reason=f"There is no file {CLAIM_FILE} yet.", details={"verdict": "open"})
        async with workspace.open_fresh(changes) as fresh:
            run = await run_claim(fresh, CLAIM_FILE, self.args.claim)
        verdict, reason = judge_claim(run)
        failures = [asdict(one) for one in run.failures]
        executed = run.proof.executed[:_MAX_EXECUTED] if run.proof is not None else ()
        files = list(dict.fromkeys(one.partition(":")[0] for one in executed))
        details = {"verdict": verdict, "failures": failures, "executed": list(executed), "files": files}
        return GoalResult(achieved=verdict != "open", reason=reason, details=details)

    def select_changes(self, changes: Sequence[FileChange]) -> Sequence[FileChange]:
        """Return the test alone: the claim is about the code as it is."""
        return [one for one in changes if one.path == CLAIM_FILE.encode()]


def judge_claim(run: PytestRun) -> tuple[Verdict, str]:
    """Tell from a run of both tests whether the claim is true, and why that can be told or not."""
    if doubt := _find_doubt(run):
        return "open", f"{doubt}\n\n{run.format_failures() or run.output[-2_000:]}"
    executed = ", ".join(f"`{one}`" for one in (run.proof.executed if run.proof is not None else ())[:_MAX_EXECUTED])
    if _name_test(run.passed[0]) == HOLDS:
        return "true", f"The claim is true: its test passed, and the test of its opposite failed. Executed: {executed}."
    return "false", f"The claim is false: its test failed, and the test of its opposite passed. Executed: {executed}."


def _find_doubt(run: PytestRun) -> str:
    """Say why a run tells nothing about the claim; empty if it does."""
    if run.finished is None or run.exit_code not in {0, 1} or run.finished != run.exit_code:
        return f"The tests did not finish. {run.explain()}"
    if {_name_test(one) for one in (*run.passed, *(one.id for one in run.failures))} != {HOLDS, FAILS}:
        return f"There have to be the tests {HOLDS} and {FAILS}, and no others."
    if len(run.passed) != 1:
        return f"Both tests {'pass' if run.passed else 'fail'}, so they say nothing about the claim."
    if not _is_assertion(run.failures[0]):
        return "The test that fails has to fail by its assertion."
    if run.proof is None or run.proof.reason or run.proof.holds != (_name_test(run.passed[0]) == HOLDS):
        return f"Not shown: {run.proof.reason if run.proof is not None else ''}".strip()
    return ""


def _name_test(node: str) -> str:
    return node.rpartition("::")[2]


def _is_assertion(failure: PytestFailure) -> bool:
    """Whether an assertion failed; where workers ran the tests, only the message tells."""
    return failure.raised == "AssertionError" or (
        not failure.raised and failure.message.startswith(("assert ", "AssertionError"))
    )
