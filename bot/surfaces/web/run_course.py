"""Follows a run through the graph of the agent, and draws the graph with the path that it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from agent import AgentEvent, Answer, Step, list_steps
from bot.pictures.flow import Flow, FlowBox, FlowLine, Look
from bot.pictures.flow_rendering import write_svg_part
from bot.pictures.layered_layout import lay_out
from bot.pictures.placed_flow import measure_box, place_flow

MAX_VISITS = 200
MAX_CALLS = 200
MAX_PLACES = 200
_LONGEST = 300  # characters of a text that is shown
_MAX_READ = 4_000
Mask = Callable[[str], str]
# Denser than other pictures: the drawing is half as wide as a window, and must be legible.
_GAP = 4.0
_PASSAGE = 4.0


@dataclass(slots=True, kw_only=True)
class NodeVisit:
    """One execution of a node; `ended` is None while it runs."""

    node: str
    stage: str
    began: float
    ended: float | None = None
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tools: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    @property
    def tokens(self) -> int:
        """The tokens that chat models read and wrote for it."""
        return self.input_tokens + self.output_tokens

    @property
    def seconds(self) -> float:
        """Its duration; 0 while it runs."""
        return max(0.0, self.ended - self.began) if self.ended is not None else 0.0


@dataclass(slots=True, kw_only=True)
class ToolUse:
    """One call of a tool; `ok` is None until it has ended."""

    tool: str
    shown: str
    began: float
    seconds: float = 0.0
    ok: bool | None = None
    found: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """One call of a chat model, failed tries included."""

    model: str
    task: str
    input_tokens: int
    output_tokens: int
    seconds: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePlace:
    """Lines that were found; `score` is None without a ranking, `role` is their meaning for the question."""

    path: str
    first_line: int
    last_line: int
    url: str | None = None
    score: float | None = None
    role: str = ""


class RunCourse:
    """Follows the events of one run. Secrets are masked in all text that is kept."""

    def __init__(self, mask: Mask) -> None:
        self.visits: list[NodeVisit] = []
        self.tools: list[ToolUse] = []
        self.models: list[ModelUse] = []
        self.searched: Sequence[str] = ()
        self.flagged = 0
        self._places: dict[tuple[str, int, int], EvidencePlace] = {}
        self._mask = mask
        self._take: Mapping[str, Callable[[Mapping[str, Any], float], None]] = {
            "step_start": self._begin_step,
            "step_end": self._end_step,
            "tool_start": self._begin_tool,
            "tool_end": self._end_tool,
            "model_end": self._add_model,
            "evidence": self._add_places,
            "flagged": self._add_flags,
            "answer": self._conclude,
        }

    @property
    def places(self) -> Sequence[EvidencePlace]:
        """The places found, best first, unranked ones last."""
        return sorted(self._places.values(), key=lambda place: -(place.score if place.score is not None else -1.0))

    def take(self, event: AgentEvent) -> bool:
        """Add an event; False if it is irrelevant to the course."""
        take = self._take.get(event.kind)
        if take is not None:
            take(event.payload, event.ts)
        return take is not None

    def _begin_step(self, payload: Mapping[str, Any], at: float) -> None:
        """Begin a visit, unless the node only reports another stage."""
        node, stage = str(payload["node"]), self._clip(payload["stage"])
        if self._find_open(node) is None and len(self.visits) < MAX_VISITS:
            self.visits.append(NodeVisit(node=node, stage=stage, began=at))

    def _end_step(self, payload: Mapping[str, Any], at: float) -> None:
        node, changes = str(payload["node"]), payload["changes"]
        visit = self._find_open(node)
        if visit is not None:
            visit.ended = at
        elif len(self.visits) < MAX_VISITS:  # one that has no stage for people
            self.visits.append(NodeVisit(node=node, stage="", began=self._last_end(at), ended=at))
        for ref in (*changes.get("retrieved", ()), *changes.get("expanded", ())):
            self._rank(ref)

    def _begin_tool(self, payload: Mapping[str, Any], at: float) -> None:
        tool = str(payload["tool"])
        if self.visits and tool not in self.visits[-1].tools:
            self.visits[-1].tools.append(tool)
        if len(self.tools) < MAX_CALLS:
            shown = f"{payload.get('label', '')} {payload.get('shown', '')}".strip()
            self.tools.append(ToolUse(tool=tool, shown=self._clip(shown), began=at))

    def _end_tool(self, payload: Mapping[str, Any], at: float) -> None:
        """End the oldest unfinished call of the tool, because calls of one tool end in no known order."""
        use = next((each for each in self.tools if each.tool == payload["tool"] and each.ok is None), None)
        if use is not None:
            use.ok, use.found = bool(payload["ok"]), int(payload.get("found") or 0)
            use.seconds = max(0.0, at - use.began)

    def _add_model(self, payload: Mapping[str, Any], _: float) -> None:
        read, written = (int(payload.get(name) or 0) for name in ("input_tokens", "output_tokens"))
        if self.visits:
            visit = self.visits[-1]
            visit.model_calls += 1
            visit.input_tokens += read
            visit.output_tokens += written
        if len(self.models) < MAX_CALLS:
            self.models.append(
                ModelUse(
                    model=self._clip(payload["model"]),
                    task=self._clip(payload["task"]),
                    input_tokens=read,
                    output_tokens=written,
                    seconds=float(payload.get("seconds") or 0.0),
                    error=self._clip(payload.get("error") or ""),
                )
            )

    def _add_places(self, payload: Mapping[str, Any], _: float) -> None:
        for at, url in zip(payload["locations"], payload["urls"], strict=True):
            key = (at.path, at.start_line, at.end_line)
            known = self._places.get(key)
            if known is not None:
                self._places[key] = replace(known, url=known.url or url)
            elif at.path and len(self._places) < MAX_PLACES:
                self._places[key] = EvidencePlace(path=at.path, first_line=key[1], last_line=key[2], url=url)

    def _rank(self, ref: Mapping[str, Any]) -> None:
        key = (str(ref["path"]), int(ref["start_line"]), int(ref["end_line"]))
        if not key[0] or (key not in self._places and len(self._places) >= MAX_PLACES):
            return
        known = self._places.get(key) or EvidencePlace(path=key[0], first_line=key[1], last_line=key[2])
        self._places[key] = replace(known, score=float(ref.get("score") or 0.0), role=str(ref.get("role") or ""))

    def _add_flags(self, payload: Mapping[str, Any], _: float) -> None:
        self.flagged += int(payload["count"])

    def _conclude(self, payload: Mapping[str, Any], at: float) -> None:
        """End unfinished visits: a stopped run does not report its node."""
        answer: Answer = payload["answer"]
        self.searched = tuple(self._clip(query) for query in answer.searched[:10])
        for visit in self.visits:
            visit.ended = visit.ended if visit.ended is not None else at

    def _find_open(self, node: str) -> NodeVisit | None:
        return next((each for each in reversed(self.visits) if each.node == node and each.ended is None), None)

    def _last_end(self, at: float) -> float:
        return max((each.ended for each in self.visits if each.ended is not None), default=at)

    def _clip(self, text: object) -> str:
        return self._mask(str(text)[:_MAX_READ])[:_LONGEST]  # half a secret is none that could be found


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
