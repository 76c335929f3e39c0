"""Metrics of streams: lag by queue and by store, rates, rows and bytes, for Prometheus and for the log.

    from twisted_mq.spark.metrics import watch

    watch(session, port=9464)  # http://127.0.0.1:9464/metrics; running queries are included

Spark does not ask Python sources for metrics, so they are computed from the offsets in the progress of each query.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import attrs
from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.queue_marks import Marks, parse_marks

log = logging.getLogger(__name__)
_MOST_NAMED = 5
"""Maximum number of topics or stores in a description."""


@attrs.define
class QueryMetrics:
    """Metrics of one query from its last progress; `rows` and `bytes` count since its first progress."""

    name: str
    batch: int = -1
    rows: int = 0
    seconds: float = 0.0
    input_rate: float = 0.0
    processed_rate: float = 0.0
    queues: dict[MessageQueue, int] = attrs.field(factory=dict)
    """Messages not read yet, by queue."""
    lost_messages: dict[MessageQueue, int] = attrs.field(factory=dict)
    """Messages that a stream with failOnDataLoss=false skipped, by queue."""
    stores: dict[str, int] = attrs.field(factory=dict)
    """Bytes of the log not read yet, by store."""
    bytes: dict[str, int] = attrs.field(factory=dict)
    """Bytes of the log that were read, by store; the bytes of a query's first batch are not known, because Spark reports no
    begin."""
    lost: dict[str, int] = attrs.field(factory=dict)
    """Bytes that a stream with failOnDataLoss=false skipped, by store."""

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add a progress in Spark's JSON form; a repeated progress counts once."""
        if progress["batchId"] != self.batch:
            self.rows += progress["numInputRows"]
        self.seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        self.input_rate = progress.get("inputRowsPerSecond") or 0.0
        self.processed_rate = progress.get("processedRowsPerSecond") or 0.0
        for source in progress["sources"]:
            self._add_source(source, counts=progress["batchId"] != self.batch)
        self.batch = progress["batchId"]

    def _add_source(self, source: Mapping[str, Any], *, counts: bool) -> None:
        start, end, latest = (_tree(source[name]) for name in ("startOffset", "endOffset", "latestOffset"))
        read, ends = _marks(end), _queues(latest)
        for queue in read.keys() & ends.keys():
            self.queues[queue] = max(0, ends[queue] - read[queue].next)
        self.lost_messages.update((queue, mark.lost) for queue, mark in read.items())
        begun, reached, there = _stores(start), _stores(end), _stores(latest)
        for store in reached:
            self.stores[store] = max(0, there.get(store, reached[store]) - reached[store])
            self.lost[store] = end[store].get("lost", 0) if isinstance(end[store], dict) else 0
            if counts and store in begun:
                self.bytes[store] = self.bytes.get(store, 0) + max(0, reached[store] - begun[store])

    @property
    def description(self) -> str:
        """Return a description of the topics and stores that the query reads."""
        topics = sorted({queue.topic for queue in self.queues})
        parts = [f"topics {_listed(topics)} in {len(self.queues)} queues"] if topics else []
        parts += [f"stores {_listed(sorted(self.stores))}"] if self.stores else []
        return "; ".join(parts) or "nothing of rocketmq"

    def __str__(self) -> str:
        return (
            f"query={self.name} batch={self.batch} rows={self.rows} rows_per_second={self.processed_rate:.1f} "
            f"seconds={self.seconds:.3f} lag_messages={sum(self.queues.values())} lag_bytes={sum(self.stores.values())} "
            f"lost_messages={sum(self.lost_messages.values())} lost_bytes={sum(self.lost.values())} reads={self.description}"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _tree(offset: Any) -> dict[str, Any]:
    """Return an offset from Spark, text or JSON; empty for offsets of other sources."""
    try:
        tree = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _marks(tree: dict[str, Any]) -> Marks:
    """Return the mark of each queue, for live queues."""
    try:
        return {queue: mark for queue, mark in parse_marks(tree).items() if isinstance(mark.next, int)}
    except (ValueError, TypeError, AttributeError, KeyError):
        return {}


def _queues(tree: dict[str, Any]) -> dict[MessageQueue, int]:
    """Return the offset of each queue, for live queues."""
    return {queue: mark.next for queue, mark in _marks(tree).items()}


def _stores(tree: dict[str, Any]) -> dict[str, int]:
    """Return the physical offset of each store."""
    reached = {name: mark.get("reached") if isinstance(mark, dict) else mark for name, mark in tree.items()}
    return {name: offset for name, offset in reached.items() if isinstance(offset, int)}


class StreamMetrics(StreamingQueryListener, Collector):
    """Listener for the queries of a session, and collector for prometheus-client. Finished queries have no rows."""

    def __init__(self) -> None:
        self._queries: dict[str, QueryMetrics] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._queries[str(event.id)] = QueryMetrics(event.name or str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        query = self._queries.setdefault(str(progress.id), QueryMetrics(progress.name or str(progress.id)))
        query.add(json.loads(progress.json))
        log.info("%s", query)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        ended = self._queries.pop(str(event.id), None)
        log.info("ended %s", event.id if ended is None else ended)

    def collect(self) -> list[Metric]:
        """Return the metrics of all running queries."""
        queries = list(self._queries.values())
        return [*map(_plain(queries), _PLAIN), *map(_by_store(queries), _BY_STORE), *map(_by_queue(queries), _BY_QUEUE)]


_PLAIN = {
    "mq_spark_rows": (CounterMetricFamily, "rows", "Rows that the query read."),
    "mq_spark_batch": (GaugeMetricFamily, "batch", "Number of the last batch."),
    "mq_spark_batch_seconds": (GaugeMetricFamily, "seconds", "How long the last batch took."),
    "mq_spark_input_rows_per_second": (GaugeMetricFamily, "input_rate", "Rows that came in, a second."),
    "mq_spark_processed_rows_per_second": (GaugeMetricFamily, "processed_rate", "Rows that were processed, a second."),
}
"""Metric -> its kind, the field of QueryMetrics, what it means."""
_BY_STORE = {
    "mq_spark_read_bytes": (CounterMetricFamily, "bytes", "Bytes of a store's log that the query read."),
    "mq_spark_lag_bytes": (GaugeMetricFamily, "stores", "Bytes of a store's log that are not read yet."),
    "mq_spark_lost_bytes": (
        GaugeMetricFamily,
        "lost",
        "Bytes of a store's log that were deleted before they were read.",
    ),
}
_BY_QUEUE = {
    "mq_spark_lag_messages": ("queues", "Messages of a queue that are not read yet."),
    "mq_spark_lost_messages": ("lost_messages", "Messages of a queue that were deleted before they were read."),
}
"""Metric -> the field of QueryMetrics, what it means."""


def _plain(queries: list[QueryMetrics]) -> Any:
    def family(name: str) -> Metric:
        kind, field, meaning = _PLAIN[name]
        made = kind(name, meaning, labels=["query"])
        for query in queries:
            made.add_metric([query.name], getattr(query, field))
        return made  # type: ignore[no-any-return]

    return family


def _by_store(queries: list[QueryMetrics]) -> Any:
    def family(name: str) -> Metric:
        kind, field, meaning = _BY_STORE[name]
        made = kind(name, meaning, labels=["query", "store"])
        for query in queries:
            for store, value in dict(getattr(query, field)).items():
                made.add_metric([query.name, store], value)
        return made  # type: ignore[no-any-return]

    return family


def _by_queue(queries: list[QueryMetrics]) -> Any:
    def family(name: str) -> Metric:
        field, meaning = _BY_QUEUE[name]
        made = GaugeMetricFamily(name, meaning, labels=["query", "topic", "broker", "queue"])
        for query in queries:
            for queue, value in dict(getattr(query, field)).items():
                made.add_metric([query.name, queue.topic, queue.broker_name, str(queue.queue_id)], value)
        return made

    return family


def watch(
    session: SparkSession, port: int | None = None, host: str = "127.0.0.1", registry: CollectorRegistry = REGISTRY
) -> StreamMetrics:
    """Listen to the session's queries; with a port, serve their metrics there for Prometheus."""
    metrics = StreamMetrics()
    registry.register(metrics)
    session.streams.addListener(metrics)
    if port is not None:
        start_http_server(port, host, registry)
    return metrics
