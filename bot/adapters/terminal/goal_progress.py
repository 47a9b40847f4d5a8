"""Shows a goal run in progress, a line for each thing that happens: iterations, commands, tools, checks."""

from __future__ import annotations

from collections.abc import Callable

from agent import AgentEvent
from bot.markdown import to_one_line

_LONGEST_REASON = 300


class GoalProgress:
    """Writes the lines of one run; a command is written in full, as it is about to run."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def take(self, event: AgentEvent) -> None:
        """Write the line of an event, if it is worth one."""
        if line := describe_goal_event(event):
            self._write(line)


def describe_goal_event(event: AgentEvent) -> str:
    """Describe an event of a goal run in a line; empty for a minor one."""
    payload = event.payload
    match event.kind:
        case "step_start" if payload["node"] == "plan":
            return to_one_line(str(payload["stage"]))
        case "command":
            return f"  $ {to_one_line(str(payload['line']))}"
        case "tool_start" if payload["tool"] not in {"bash_exec", "run_pytest"}:  # their commands are shown anyway
            return f"  {payload['label']} {to_one_line(str(payload['shown']) or str(payload['tool']))}"
        case "goal_check":
            reason = to_one_line(str(payload["reason"]).partition("\n\n")[0])[:_LONGEST_REASON]
            return f"  {payload['label']}: {reason}"
        case _:
            return ""
