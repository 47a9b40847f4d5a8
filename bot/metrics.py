"""What is counted and measured, for Prometheus: conversations, load, indexes and the web server, in one registry."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from bot.messages import SendMethod
from bot.observing import AnswerLoad, Loss, Stage, TurnOutcome
from bot.repository_states import RepositoryState

CONTENT_TYPE = CONTENT_TYPE_LATEST
STALLS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SECONDS = (0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class ConversationMetrics:
    """An `Observer` of conversations; `registry` holds all that is told at `/metrics`, and nothing is shared."""

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
        self._indexes = _Indexes(registry)
        release = Gauge("citebot_info", "The release that runs.", ["version"], registry=registry)
        release.labels(_release()).set(1)

    def measure_stage(self, platform: str, stage: Stage, seconds: float) -> None:
        """Measure how long a reply took to a stage."""
        self._stages.labels(platform, stage).observe(seconds)

    def count_outcome(self, platform: str, outcome: TurnOutcome) -> None:
        """Count a message that is over."""
        if outcome == "command":
            self._commands.labels(platform).inc()
        else:
            self._questions.labels(platform, outcome).inc()

    def count_rate_limit(self, platform: str, method: SendMethod) -> None:
        """Count that a platform asked to wait."""
        self._limited.labels(platform, method).inc()

    def count_loss(self, platform: str, reason: Loss) -> None:
        """Count that something a platform had to tell was not heard."""
        self._lost.labels(platform, reason).inc()

    def count_request(self, path: str, status: int) -> None:
        """Count an HTTP request; the path is that of the route, so that there are only so many."""
        self._requests.labels(path, str(status)).inc()

    def count_closed(self, reason: str) -> None:
        """Count a connection that was closed before it had brought a request."""
        self._closed.labels(reason).inc()

    def measure_stall(self, seconds: float) -> None:
        """Measure for how long the event loop was held."""
        self._stalls.observe(seconds)

    def text(self, load: AnswerLoad, repositories: Iterable[RepositoryState], now: float) -> bytes:
        """Write everything in the text format, with the load and the indexes as they are."""
        self._under_way.set(load.under_way)
        self._waiting.set(load.waiting)
        self._indexes.show(repositories, now)
        return generate_latest(self.registry)


class _Indexes:
    """How fresh each repository is."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ["repository"]
        self._usable = Gauge("citebot_index_usable", "Whether there is an index to read.", label, registry=registry)
        self._age = Gauge("citebot_index_age_seconds", "Seconds since it was indexed.", label, registry=registry)
        self._behind = Gauge(
            "citebot_index_commits_behind", "Commits that are not indexed yet.", label, registry=registry
        )

    def show(self, repositories: Iterable[RepositoryState], now: float) -> None:
        for gauge in (self._usable, self._age, self._behind):
            gauge.clear()  # what cannot be told is left out, not told as it was
        for each in repositories:
            self._usable.labels(each.name).set(each.is_usable)
            if each.indexed_at is not None:
                self._age.labels(each.name).set(max(0.0, now - each.indexed_at))
            if each.commits_behind is not None:
                self._behind.labels(each.name).set(each.commits_behind)


def _release() -> str:
    try:
        return version("citebot")
    except PackageNotFoundError:  # run from its folder without being installed
        return "unknown"
