"""The verdict on a goal run: whether its goal is reached, the patch, the evidence, and the cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.goals.goal import Goal, read_stored_changes
from agent.goals.goal_graph import GoalRun
from agent.limits import TokenUsage
from agent.sandbox.patch import FileChange, format_change, leads_out
from agent.text.escaping import format_code_block, format_code_span, format_count, replace_control_characters
from indexer.types import Location

_MAX_LISTED = 20
_MAX_PLACES = 5
_MAX_LINES = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalVerdict:
    """The end of a run.

    `patch` holds the accepted changes, as `git apply` takes them at the commit, unmasked. `ended_by` is the reason of a
    failure; `commands` is everything that was run; `places` are the commit's places of executed and changed code;
    `refused` are links out of the repository and settings of submodules, which no patch contains.
    """

    goal: str
    achieved: bool
    reason: str
    details: Mapping[str, Any]
    patch: bytes
    changed: tuple[str, ...]
    repository: str
    commit: str
    iterations: int
    calls: int
    usage: TokenUsage
    commands: tuple[str, ...]
    ended_by: str
    model: str
    command: str = ""  # of the check, as a person would type it
    test: str = ""  # the check of a claim
    places: tuple[Location, ...] = ()
    refused: tuple[str, ...] = ()

    def to_text(self, redact: Callable[[str], str]) -> str:
        """Write it as Markdown, with secrets masked; the patch is separate."""
        return "\n\n".join([*self._describe_outcome(), *self._describe_evidence(redact), self._describe_cost()])

    def to_memory(self, redact: Callable[[str], str]) -> str:
        """Write it for the next question of the conversation, the least important part last."""
        what = f"This was a goal run ({self.goal}), which a person had approved; it ran in a sandbox."
        return "\n\n".join([what, *self._describe_outcome(), self._describe_cost(), *self._describe_evidence(redact)])

    def _describe_outcome(self) -> list[str]:
        head = self.reason.partition("\n\n")[0]
        parts = [f"**{self._name_outcome()}** {replace_control_characters(head)}".strip()]
        if self.refused:
            names = ", ".join(map(format_code_span, self.refused[:_MAX_LISTED]))
            parts.append(f"**Left out of the patch**, because it would lead out of the repository: {names}")
        if not self.achieved and self.ended_by:
            parts.append(f"The run ended because {self.ended_by}.")
        return parts

    def _describe_evidence(self, redact: Callable[[str], str]) -> list[str]:
        more = self.reason.partition("\n\n")[2]
        parts = [f"The test:\n{_quote(redact(self.test), 'python')}"] if self.test else []
        if output := "\n".join(str(one.get("message", "")) for one in self.details.get("failures", [])) or more:
            parts.append(f"What the run reported:\n{_quote(redact(output), '')}")
        if self.changed and self.goal != "claim":
            parts.append(f"Changed, in the patch: {', '.join(map(format_code_span, self.changed[:_MAX_LISTED]))}")
        return parts

    def _name_outcome(self) -> str:
        if self.goal == "claim":
            return {"true": "True.", "false": "False."}.get(str(self.details.get("verdict")), "Not found out.")
        return "Reached." if self.achieved else "Not reached."

    def _describe_cost(self) -> str:
        tokens = f"{self.usage.input_tokens:,} tokens in, {self.usage.output_tokens:,} out"
        check = f"Checked with {format_code_span(self.command, longest=200)}: " if self.command else ""
        return (
            f"_{check}{format_count(self.iterations, 'iteration')}, "
            f"{format_count(len(self.commands), 'command')} in the sandbox, "
            f"{format_count(self.calls, 'call')} of {format_code_span(self.model or 'no model')}: {tokens}. "
            f"Read at {self.commit[:7]}._"
        )


def make_verdict(run: GoalRun, goal: Goal[Any], redact: Callable[[str], str]) -> GoalVerdict:
    """Return the verdict of a run's final state."""
    state = run.state
    selected = goal.select_changes(read_stored_changes(state.get("changes", [])))
    refused = [one for one in selected if leads_out(one)]
    changes = [one for one in selected if one not in refused]
    tests = changes if goal.name == "claim" else []
    usage = state.get("usage", {"calls": 0, "input_tokens": 0, "output_tokens": 0})
    return GoalVerdict(
        goal=goal.name,
        achieved=state.get("goal_achieved", False),
        reason=state.get("goal_reason", ""),
        details=state.get("goal_details", {}),
        patch=b"".join(format_change(one, run.commit) for one in changes),
        changed=tuple(one.path.decode(errors="replace") for one in changes),
        repository=run.repository,
        commit=run.commit,
        iterations=state.get("iteration", 0),
        calls=usage["calls"],
        usage=TokenUsage(input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"]),
        commands=tuple(state.get("commands", [])),
        ended_by=state.get("ended_by", ""),
        model=state.get("model_name", ""),
        command=redact(goal.describe_command()),
        test=b"\n".join(one.new.content for one in tests if one.new is not None).decode(errors="replace"),
        refused=tuple(one.path.decode(errors="replace") for one in refused),
        places=tuple(_list_places(state.get("goal_details", {}), changes)),
    )


def _list_places(details: Mapping[str, Any], changes: Sequence[FileChange]) -> Sequence[Location]:
    """List files of the commit, each once: changed ones, selected tests, executed ones."""
    made = {one.path.decode(errors="replace"): one for one in changes}
    lines = {path: _find_first_change(one) for path, one in made.items() if one.old is not None}
    for failure in details.get("failures", []):
        lines.setdefault(str(failure["path"]), max(1, int(failure["line"])))
    for path in (*details.get("files", []), *(test.partition("::")[0] for test in details.get("passed", []))):
        lines.setdefault(str(path), 1)
    known = [(path, line) for path, line in lines.items() if path not in made or made[path].old is not None]
    return [Location(path=path, start_line=line, end_line=line) for path, line in known[:_MAX_PLACES] if path]


def _find_first_change(change: FileChange) -> int:
    """Return the first changed line."""
    old = change.old.content.splitlines() if change.old is not None else []
    new = change.new.content.splitlines() if change.new is not None else []
    same = next((number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new))
    return max(1, min(same + 1, len(old)))


def _quote(text: str, language: str) -> str:
    lines = replace_control_characters(text).strip("\n").split("\n")  # a terminal would obey some of them
    cut = [*lines[:_MAX_LINES], "..."] if len(lines) > _MAX_LINES else lines
    return format_code_block(cut, language)
