"""The graph of the agent as a drawing, in which the way that a run has taken is lit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

from agent import Step, list_steps
from bot.pictures.flow import Flow, FlowBox, FlowLine, Look
from bot.pictures.flow_svg import write_svg_part
from bot.pictures.layered_layout import lay_out
from bot.pictures.placed_flow import measure_box, place_flow
from bot.surfaces.web.run_course import NodeVisit

# Denser than other pictures: the drawing is half as wide as a window, and must be legible.
_GAP = 4.0
_PASSAGE = 4.0


class AgentGraphDrawing:
    """Draws the graph with the way of a run in it; it is laid out once."""

    def __init__(self, format_seconds: Callable[[float], str], steps: Sequence[Step] | None = None) -> None:
        self._format_seconds = format_seconds
        self._steps = list_steps() if steps is None else steps
        self._lines = [(step.name, target) for step in self._steps for target in step.targets]
        self._branching = {step.name for step in self._steps if len(step.targets) > 1}
        widths = {step.name: measure_box(FlowBox(key="", label=step.name)) for step in self._steps}
        self._layout = lay_out(widths, self._lines, gap=_GAP, passage=_PASSAGE)

    def draw(self, visits: Sequence[NodeVisit]) -> str:
        """Return the drawing; each node that was passed has its time below its name."""
        return write_svg_part(place_flow(self._describe_way(visits), self._layout, "downwards", is_bare=True))

    def _describe_way(self, visits: Sequence[NodeVisit]) -> Flow:
        taken = set(pairwise(visit.node for visit in visits))
        by_node: dict[str, list[NodeVisit]] = defaultdict(list)
        for visit in visits:
            by_node[visit.node].append(visit)
        return Flow(
            title=_summarize(visits),
            verb="leads to",
            boxes=[self._make_box(step.name, by_node[step.name]) for step in self._steps],
            lines=[
                FlowLine(
                    source=line[0], target=line[1], is_taken=line in taken,
                    is_dashed=line[0] in self._branching and line not in taken,
                )
                for line in self._lines
            ],
        )  # fmt: skip

    def _make_box(self, name: str, passed: Sequence[NodeVisit]) -> FlowBox:
        look: Look = "plain" if not passed else "taken" if all(visit.is_over for visit in passed) else "now"
        return FlowBox(
            key=name, label=name, note=self._write_time(passed), look=look, hint=self._describe(name, passed)
        )

    def _write_time(self, passed: Sequence[NodeVisit]) -> str:
        if not all(visit.is_over for visit in passed):
            return "unfinished"
        times = f"{len(passed)} × " if len(passed) > 1 else ""
        return f"{times}{self._format_seconds(sum(visit.seconds for visit in passed))}" if passed else ""

    def _describe(self, name: str, passed: Sequence[NodeVisit]) -> str:
        if not passed:
            return f"{name}: not passed"
        tokens = sum(visit.tokens for visit in passed)
        return f"{name}: {self._write_time(passed)}" + (f", {tokens:,} tokens" if tokens else "")


def _summarize(visits: Sequence[NodeVisit]) -> str:
    way = ", ".join(visit.node.replace("_", " ") for visit in visits)
    return (
        f"The graph of the agent. The path taken: {way}." if way else "The graph of the agent. No node was visited yet."
    )
