"""The kinds of goal by name, and how to create one from a person's input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from agent.errors import GoalUnreachable
from agent.goals.checks.analysis_goals import LintGoal, TypesGoal
from agent.goals.checks.claim_goal import ClaimGoal
from agent.goals.checks.execution_goals import CommandGoal, PytestGoal
from agent.goals.goal import Goal

KINDS: tuple[type[Goal[Any]], ...] = (PytestGoal, CommandGoal, ClaimGoal, TypesGoal, LintGoal)


class GoalRegistry:
    """Makes goals by the name of their kind."""

    def __init__(self, kinds: Iterable[type[Goal[Any]]] = KINDS) -> None:
        self._kinds = {kind.name: kind for kind in kinds}

    def make(self, name: str, args: Mapping[str, Any]) -> Goal[Any]:
        """Make a goal; `GoalUnreachable` for an unknown kind or invalid arguments."""
        kind = self._kinds.get(name)
        if kind is None:
            raise GoalUnreachable(f"There is no goal {name[:80]!r}. There are: {', '.join(self._kinds)}.")
        try:
            return kind(kind.arguments.model_validate(dict(args)))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "arguments"
            said = first["msg"].removeprefix("Value error, ")
            raise GoalUnreachable(f"The goal {name} cannot be made of this ({where}): {said}") from error
