"""The metrics of a process that shares its work: the line of messages, leases, connections, and published indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.monitoring.cluster_state import CacheState, ClusterState


class ClusterMetrics(Collector):
    """Shows the state that was noted last; what is unknown is left out."""

    def __init__(self) -> None:
        self.state: ClusterState | None = None

    def collect(self) -> Iterator[Metric]:
        """Write the state down for anyone who fetches the metrics."""
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
