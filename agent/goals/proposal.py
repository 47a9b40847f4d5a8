"""The request for a goal run, and the proposal that a person approves before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.limits import MAX_GOAL_ITERATIONS, TurnLimits
from agent.sandbox.sandbox import SandboxLimits
from agent.text.escaping import format_code_span

MOST_ITERATIONS = 100
LONGEST_TASK = 4_000  # characters
_LONGEST_COMMAND = 8_000
_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalRequest:
    """A request for a goal run: a kind of goal with its arguments, and in the person's words what they want.

    With `hitl` a person is asked after every iteration.
    """

    goal: str
    arguments: Mapping[str, Any]
    task: str
    repository: str | None = None
    max_iterations: int = MAX_GOAL_ITERATIONS
    hitl: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalProposal:
    """A proposed goal run: its task, its command, its sandbox and its limits."""

    request: GoalRequest
    repository: str
    commit: str
    condition: str
    command: str
    model: str
    mechanism: str
    limits: TurnLimits
    sandbox_limits: SandboxLimits = field(default_factory=SandboxLimits)

    def to_text(self) -> str:
        """Write it in plain words, as Markdown; all of it, since who approves it has to know what they approve."""
        limits, box, most = self.limits, self.sandbox_limits, self.request.max_iterations
        rounds = f"{most} iteration{'s' * (most != 1)}"
        minutes, megabytes = f"{limits.seconds / 60:.0f} minutes", box.memory_bytes // _MEGABYTE
        return f"""\
A goal run on {format_code_span(self.repository)} at `{self.commit[:7]}`: \
{format_code_span(self.request.task, longest=LONGEST_TASK)}.
- {self.condition}: {format_code_span(self.command, longest=_LONGEST_COMMAND)}
- {format_code_span(self.model)} writes code and chooses further commands; each is shown as it runs.
- All of it runs in a sandbox ({self.mechanism}), on a copy of the commit, without a network. Nothing of yours is \
changed: the result is a patch that you may apply.
- At most {rounds}, {minutes}, {limits.calls} calls of the model and \
{limits.tokens:,} tokens; a command at most {box.seconds:.0f} seconds and {megabytes:,} MB of memory."""
