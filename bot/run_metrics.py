"""What is counted of the agent's runs: nodes, routes, guard verdicts, flags, tools, models and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram

from agent.events import AgentEvent, EventKind, Subscription
from bot.metrics import SECONDS

MOST_VALUES = 60  # of one label; whatever comes beyond is counted as OTHER
OTHER = "other"
_MILLION = 1_000_000


class ModelPrice(Protocol):
    """What a model costs, in dollars for a million tokens."""

    @property
    def input(self) -> float:
        """For those that it reads."""

    @property
    def output(self) -> float:
        """For those that it writes."""


class BoundedLabels:
    """Values of a label: those that came first as they are, so that no name from outside makes them many."""

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._known: set[str] = set()
        self._most = most

    def __call__(self, value: object) -> str:
        """Return the value, or `other`."""
        text = str(value or "")[:80]
        if text not in self._known and len(self._known) >= self._most:
            return OTHER
        self._known.add(text)
        return text


class RunMetrics:
    """Takes in the events of all runs."""

    def __init__(self, registry: CollectorRegistry, prices: Mapping[str, ModelPrice]) -> None:
        self._prices = prices
        self._begun: dict[tuple[str, str], float] = {}
        self._node, self._tool, self._model, self._task, self._route = (BoundedLabels() for _ in range(5))
        self._dropped = Counter("citebot_events_dropped", "Events that were not counted.", registry=registry)
        self._nodes = Histogram(
            "citebot_node_seconds", "Seconds in a node of the graph.", ["node"], buckets=SECONDS, registry=registry
        )
        self._routes = Counter(
            "citebot_router_decisions", "Where the router went.", ["route", "fast_path"], registry=registry
        )
        self._verdicts = Counter(
            "citebot_guard_verdicts", "What the guard thought of questions.", ["verdict"], registry=registry
        )
        self._classified = Counter(
            "citebot_guard_classifications", "What the classifier said of questions.", ["result"], registry=registry
        )
        self._flags = Counter(
            "citebot_evidence_flags",
            "Passages of what was read that give orders to a model.",
            ["source"],
            registry=registry,
        )
        self._answers = Counter(
            "citebot_runs", "Runs that came to an answer, by their route.", ["route"], registry=registry
        )
        self._tools = Counter("citebot_tool_calls", "Calls of tools.", ["tool"], registry=registry)
        self._tool_errors = Counter("citebot_tool_errors", "Calls of tools that failed.", ["tool"], registry=registry)
        self._calls = Counter("citebot_model_calls", "Calls of chat models.", ["model", "task"], registry=registry)
        self._errors = Counter("citebot_model_errors", "Calls that failed.", ["model", "task"], registry=registry)
        self._tokens = Counter("citebot_model_tokens", "Tokens.", ["model", "direction"], registry=registry)
        self._seconds = Histogram(
            "citebot_model_seconds", "Seconds that a call took.", ["model"], buckets=SECONDS, registry=registry
        )
        self._cost = Counter(
            "citebot_model_cost_dollars",
            "What calls cost, by the prices of citebot.toml.",
            ["model"],
            registry=registry,
        )

    async def follow(self, events: Subscription) -> None:
        """Take in events for as long as they come, and count those that came too fast."""
        dropped = 0
        async for event in events:
            self.take(event)
            self._dropped.inc(events.dropped - dropped)
            dropped = events.dropped

    def take(self, event: AgentEvent) -> None:
        """Take in one event."""
        taking: Mapping[EventKind, Callable[[AgentEvent], None]] = {
            "step_start": self._record_node_start,
            "step_end": self._measure_node,
            "classified": self._count_classification,
            "tool_end": self._count_tool_call,
            "flagged": self._count_flags,
            "model_end": self._record_model_call,
            "answer": self._count_answer,
            "run_end": self._forget_run,
        }
        if event.kind in taking:
            taking[event.kind](event)

    def _record_node_start(self, event: AgentEvent) -> None:
        self._begun.setdefault((event.run_id, str(event.payload["node"])), event.ts)

    def _measure_node(self, event: AgentEvent) -> None:
        node, changes = str(event.payload["node"]), event.payload["changes"]
        began = self._begun.pop((event.run_id, node), None)
        if began is not None:
            self._nodes.labels(self._node(node)).observe(max(0.0, event.ts - began))
        if node == "router" and "router_output" in changes:
            self._count_route(changes["router_output"])
        elif node == "security_gateway":
            self._verdicts.labels(_verdict(changes)).inc()

    def _count_classification(self, event: AgentEvent) -> None:
        self._classified.labels(str(event.payload["result"])).inc()

    def _count_route(self, decision: Mapping[str, Any]) -> None:
        fast = "yes" if decision.get("fast_path") else "no"
        self._routes.labels(self._route(decision.get("route")), fast).inc()

    def _count_tool_call(self, event: AgentEvent) -> None:
        tool = self._tool(event.payload["tool"])
        self._tools.labels(tool).inc()
        if not event.payload["ok"]:
            self._tool_errors.labels(tool).inc()

    def _count_flags(self, event: AgentEvent) -> None:
        self._flags.labels(str(event.payload["source"])).inc(int(event.payload["count"]))

    def _record_model_call(self, event: AgentEvent) -> None:
        told = event.payload
        name, task = str(told["model"]), self._task(told["task"])
        model, read, written = self._model(name), int(told["input_tokens"]), int(told["output_tokens"])
        self._calls.labels(model, task).inc()
        self._seconds.labels(model).observe(float(told["seconds"]))
        self._tokens.labels(model, "input").inc(read)
        self._tokens.labels(model, "output").inc(written)
        if told["error"]:
            self._errors.labels(model, task).inc()
        if (price := self._prices.get(name)) is not None:
            self._cost.labels(model).inc((read * price.input + written * price.output) / _MILLION)

    def _count_answer(self, event: AgentEvent) -> None:
        self._answers.labels(self._route(event.payload["answer"].route)).inc()

    def _forget_run(self, event: AgentEvent) -> None:
        """Forget the nodes that a run was broken off in."""
        for key in [key for key in self._begun if key[0] == event.run_id]:
            del self._begun[key]


def _verdict(changes: Mapping[str, Any]) -> str:
    """`allow`, `watch`, `block`; `empty` and `too_long` are no questions at all."""
    if not changes.get("is_blocked"):
        return str(changes.get("gateway_verdict") or "allow")
    reason = str(changes.get("gateway_reason"))
    return reason if reason in {"empty", "too_long"} else "block"
