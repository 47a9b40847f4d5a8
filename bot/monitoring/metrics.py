"""The Prometheus metrics of runs, conversations, indexes, the web server and the cluster, in one registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agent import AgentEvent, Database, Subscription
from bot.messages import SendMethod
from bot.monitoring.observer import AnswerLoad, Loss, Stage, TurnOutcome
from bot.repositories.status import RepositoryState
from bot.settings import PriceTable
from indexer import IndexerError

if TYPE_CHECKING:
    from agent import PoolLoad
    from bot.repositories.segments import IndexLag, SharedSegments
    from indexer import CacheCounts


class ClusterMetrics(Collector):
    """Shows the last noted state, without unknown values."""

    def __init__(self) -> None:
        self.state: ClusterState | None = None

    def collect(self) -> Iterator[Metric]:
        """Return the present state for the metrics."""
        state = self.state
        if state is None:
            return
        role = {state.role: float(state.waiting)}
        yield _make_gauge("citebot_queue_depth", "Messages that no process is handling.", "role", role)
        oldest = {state.role: state.oldest}
        yield _make_gauge("citebot_queue_oldest_seconds", "Seconds that the oldest waits.", "role", oldest)
        held = dict.fromkeys(sorted(state.held), 1.0)
        yield _make_gauge("citebot_lease_held", "Leases that this process holds.", "name", held)
        size = {name: float(load.size) for name, load in state.pools.items()}
        yield _make_gauge("citebot_postgres_pool_connections", "Connections to Postgres.", "pool", size)
        in_use = {name: float(load.in_use) for name, load in state.pools.items()}
        yield _make_gauge("citebot_postgres_pool_in_use", "Connections that are in use.", "pool", in_use)
        waiting = {name: float(load.waiting) for name, load in state.pools.items()}
        yield _make_gauge("citebot_postgres_pool_waiting", "Callers that wait for one.", "pool", waiting)
        if state.cache is not None:
            yield from _describe_cache(state.cache)


def _describe_cache(cache: CacheState) -> Iterator[Metric]:
    counts = cache.counts
    for name, text, value in (
        ("citebot_segments_cache_hits", "Questions whose index was on this disk.", counts.hits),
        ("citebot_segments_cache_misses", "Questions whose index had to be downloaded first.", counts.misses),
        ("citebot_segments_cache_found_bytes", "Bytes of new indexes that were on this disk.", counts.found_bytes),
        ("citebot_segments_cache_fetched_bytes", "Bytes of new indexes that were fetched.", counts.fetched_bytes),
        ("citebot_segments_requests", "Requests to the object store for indexes.", counts.requests),
    ):
        yield CounterMetricFamily(name, text, value=value)
    yield GaugeMetricFamily("citebot_segments_cache_bytes", "Bytes on this disk.", value=cache.disk_bytes)
    behind = {lag.repository: float(lag.versions) for lag in cache.lags}
    yield _make_gauge("citebot_index_versions_behind", "Published versions not served here.", "repository", behind)
    seconds = {lag.repository: lag.seconds for lag in cache.lags}
    text = "Seconds between the indexing of what is served here and of what was published last."
    yield _make_gauge("citebot_index_lag_seconds", text, "repository", seconds)


def _make_gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        gauge.add_metric([key], value)
    return gauge


MAX_VALUES = 60  # of one label; whatever comes beyond is counted as OTHER


OTHER = "other"


CONTENT_TYPE = CONTENT_TYPE_LATEST


STALLS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


SECONDS = (0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class BoundedLabels:
    """Values of a label: the first ones unchanged, so that outside names cannot create many."""

    def __init__(self, most: int = MAX_VALUES) -> None:
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
    """Counts the events of all runs."""

    def __init__(self, registry: CollectorRegistry, prices: Mapping[str, PriceTable]) -> None:
        self._prices = prices
        self._begun: dict[tuple[str, str], float] = {}
        self._node, self._tool, self._model, self._task, self._route = (BoundedLabels() for _ in range(5))
        self._dropped = Counter("citebot_events_dropped", "Events that were not counted.", registry=registry)
        self._nodes = Histogram(
            "citebot_node_seconds", "Seconds in a node of the graph.", ["node"], buckets=SECONDS, registry=registry
        )
        self._routes = Counter(
            "citebot_router_decisions", "Where the router or the model went.", ["route", "fast_path"], registry=registry
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
            "citebot_runs", "Runs that reached an answer, by their route.", ["route"], registry=registry
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
        """Count events as they arrive, and dropped ones."""
        dropped = 0
        async for event in events:
            self.take(event)
            self._dropped.inc(events.dropped - dropped)
            dropped = events.dropped

    def take(self, event: AgentEvent) -> None:
        """Count one event."""
        payload = event.payload
        match event.kind:
            case "step_start":
                self._begun.setdefault((event.run_id, str(payload["node"])), event.ts)
            case "step_end":
                self._measure_node(event)
            case "classified":
                self._classified.labels(str(payload["result"])).inc()
            case "tool_end":
                tool = self._tool(payload["tool"])
                self._tools.labels(tool).inc()
                if not payload["ok"]:
                    self._tool_errors.labels(tool).inc()
            case "flagged":
                self._flags.labels(str(payload["source"])).inc(int(payload["count"]))
            case "model_end":
                self._record_model_call(payload)
            case "answer":
                self._answers.labels(self._route(payload["answer"].route)).inc()
            case "run_end":  # the nodes that it was interrupted in never end
                self._begun = {key: began for key, began in self._begun.items() if key[0] != event.run_id}

    def _measure_node(self, event: AgentEvent) -> None:
        node, changes = str(event.payload["node"]), event.payload["changes"]
        began = self._begun.pop((event.run_id, node), None)
        if began is not None:
            self._nodes.labels(self._node(node)).observe(max(0.0, event.ts - began))
        if node in {"router", "executor_llm"} and "router_output" in changes:
            decision = changes["router_output"]
            fast = "yes" if decision.get("fast_path") else "no"
            self._routes.labels(self._route(decision.get("route")), fast).inc()
        elif node == "security_gateway":
            self._verdicts.labels(_read_verdict(changes)).inc()

    def _record_model_call(self, payload: Mapping[str, Any]) -> None:
        name, task = str(payload["model"]), self._task(payload["task"])
        model, read, written = self._model(name), int(payload["input_tokens"]), int(payload["output_tokens"])
        self._calls.labels(model, task).inc()
        self._seconds.labels(model).observe(float(payload["seconds"]))
        self._tokens.labels(model, "input").inc(read)
        self._tokens.labels(model, "output").inc(written)
        if payload["error"]:
            self._errors.labels(model, task).inc()
        if (price := self._prices.get(name)) is not None:
            self._cost.labels(model).inc(price.compute_dollars(payload))


def _read_verdict(changes: Mapping[str, Any]) -> str:
    """Return `allow`, `watch` or `block`; `empty` or `too_long` for an invalid question."""
    if not changes.get("is_blocked"):
        return str(changes.get("gateway_verdict") or "allow")
    reason = str(changes.get("gateway_reason"))
    return reason if reason in {"empty", "too_long"} else "block"


class ConversationMetrics:
    """A `ConversationObserver`; `registry` has all metrics, and nothing is shared."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._questions = Counter(
            "citebot_questions", "Questions that are over, by how.", ["platform", "outcome"], registry=registry
        )
        self._commands = Counter("citebot_commands", "Commands that were carried out.", ["platform"], registry=registry)
        self._stages = Histogram(
            "citebot_reply_seconds", "Seconds from a question to a stage of its reply.", ["platform", "stage"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._limited = Counter(
            "citebot_rate_limited", "Times that a platform asked to wait.", ["platform", "method"], registry=registry
        )
        self._lost = Counter(
            "citebot_events_lost", "Events of platforms that were lost, by reason.", ["platform", "reason"],
            registry=registry,
        )  # fmt: skip
        self._requests = Counter(
            "citebot_web_requests", "HTTP requests, by the path that was meant.", ["path", "status"], registry=registry
        )
        self._closed = Counter(
            "citebot_web_connections_closed", "Connections closed by citebot, by reason.", ["reason"], registry=registry
        )
        self._under_way = Gauge("citebot_answers_under_way", "Questions that are being answered.", registry=registry)
        self._waiting = Gauge("citebot_questions_waiting", "Questions that wait for others.", registry=registry)
        self._stalls = Histogram(
            "citebot_loop_stall_seconds", "Processor seconds for which the event loop was held too long.",
            buckets=STALLS, registry=registry,
        )  # fmt: skip
        self._cluster = ClusterMetrics()
        registry.register(self._cluster)
        self._indexes = _Indexes(registry)
        release = Gauge("citebot_info", "The release that runs.", ["version"], registry=registry)
        release.labels(_read_release()).set(1)

    def measure_stage(self, platform: str, stage: Stage, seconds: float) -> None:
        """Measure the time of a reply up to a stage."""
        self._stages.labels(platform, stage).observe(seconds)

    def count_outcome(self, platform: str, outcome: TurnOutcome) -> None:
        """Count a finished message."""
        if outcome == "command":
            self._commands.labels(platform).inc()
        else:
            self._questions.labels(platform, outcome).inc()

    def count_rate_limit(self, platform: str, method: SendMethod) -> None:
        """Count a platform's request to wait."""
        self._limited.labels(platform, method).inc()

    def count_loss(self, platform: str, reason: Loss) -> None:
        """Count a platform's lost event."""
        self._lost.labels(platform, reason).inc()

    def count_request(self, path: str, status: int) -> None:
        """Count an HTTP request by route, because paths are unlimited."""
        self._requests.labels(path, str(status)).inc()

    def count_closed(self, reason: str) -> None:
        """Count a connection that was closed before it sent a request."""
        self._closed.labels(reason).inc()

    def measure_stall(self, seconds: float) -> None:
        """Measure how long the event loop was blocked."""
        self._stalls.observe(seconds)

    def show_cluster(self, state: ClusterState | None) -> None:
        """Show the shared figures of a cluster; unknown ones are left out."""
        self._cluster.state = state

    def text(self, load: AnswerLoad, repositories: Iterable[RepositoryState], now: float) -> bytes:
        """Write everything in the text format, with the present load and indexes."""
        self._under_way.set(load.under_way)
        self._waiting.set(load.waiting)
        self._indexes.show(repositories, now)
        return generate_latest(self.registry)


class _Indexes:
    """The freshness of each repository."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ["repository"]
        self._usable = Gauge("citebot_index_usable", "Whether there is an index to read.", label, registry=registry)
        self._age = Gauge("citebot_index_age_seconds", "Seconds since it was indexed.", label, registry=registry)
        self._behind = Gauge(
            "citebot_index_commits_behind", "Commits that are not indexed yet.", label, registry=registry
        )

    def show(self, repositories: Iterable[RepositoryState], now: float) -> None:
        for gauge in (self._usable, self._age, self._behind):
            gauge.clear()  # unknown figures are left out, instead of stale
        for each in repositories:
            self._usable.labels(each.name).set(each.is_usable)
            if each.index_time is not None:
                self._age.labels(each.name).set(max(0.0, now - each.index_time))
            if each.commits_behind is not None:
                self._behind.labels(each.name).set(each.commits_behind)


def _read_release() -> str:
    try:
        return version("citebot")
    except PackageNotFoundError:  # run from its folder without being installed
        return "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheState:
    """The published indexes on this disk: how often they were wanted, their bytes, and which of them are behind."""

    counts: CacheCounts
    disk_bytes: int
    lags: Sequence[IndexLag]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterState:
    """The messages that no process is at, the age of the oldest in seconds, and the holders of leases by name.

    `held` are the leases of this process, `pools` its connections to Postgres by purpose. There is
    a cache if it answers from published indexes.
    """

    role: str
    waiting: int
    oldest: float
    holders: Mapping[str, str]
    held: frozenset[str]
    pools: Mapping[str, PoolLoad] = field(default_factory=dict)
    cache: CacheState | None = None

    def record(self) -> dict[str, Any]:
        """Describe it to a probe."""
        record: dict[str, Any] = {
            "role": self.role,
            "waiting": self.waiting,
            "oldest_seconds": round(self.oldest, 1),
            "leases": dict(self.holders),
            "held": sorted(self.held),
            "pools": {name: asdict(load) for name, load in self.pools.items()},
        }
        if self.cache is not None:
            record["cache_bytes"] = self.cache.disk_bytes
            record["lags"] = [asdict(lag) for lag in self.cache.lags]
        return record


async def read_cluster_state(
    database: Database,
    *,
    role: str,
    held: frozenset[str],
    pools: Mapping[str, PoolLoad] | None = None,
    segments: SharedSegments | None = None,
) -> ClusterState:
    """Ask the database that the processes share; raises `InboxError`."""
    row = await database.row(
        "SELECT count(*), lease_clock() - min(received_at) FROM inbox "
        "WHERE state = 'received' OR (state = 'running' AND owner = '')"
    )
    waiting, age = row or (0, None)
    holders = await database.rows("SELECT name, owner FROM leases WHERE owner <> '' AND lease_until >= lease_clock()")
    return ClusterState(
        role=role,
        waiting=int(waiting),
        oldest=max(0.0, age or 0.0),
        holders={str(name): str(owner) for name, owner in holders},
        held=held,
        pools=pools or {},
        cache=await _read_cache(segments) if segments is not None else None,
    )


async def _read_cache(segments: SharedSegments) -> CacheState:
    """Read the state of the cache; the lag is omitted if it is unknown."""
    try:
        lags = await segments.measure_lags()
    except IndexerError:
        lags = []
    return CacheState(counts=segments.generations.counts, disk_bytes=await segments.measure_cache(), lags=lags)
