"""Data of a store report, collected by a few Spark jobs."""

from __future__ import annotations

import itertools
from types import ModuleType

import attrs
from pyspark.sql import DataFrame, Row, SparkSession

from twisted_mq.spark.jobs import duplicates, gaps, latency, volume
from twisted_mq.spark.jobs.topics import TopicKind, report_order, topic_kind
from twisted_mq.spark.source.damage import damage_in_parallel
from twisted_mq.spark.source.data_source import FORMAT
from twisted_mq.spark.source.log_end import complete_end
from twisted_mq.spark.source.log_stretch import Damage
from twisted_mq.spark.source.stores import Store, list_log_files

LISTED = 50
"""Maximum number of single gaps and duplicates in a report; the sums count all."""
INTERVALS = 60


@attrs.frozen
class QueueFigures:
    """Numbers of one queue. `missing` counts queue offsets in gaps, `bad_crc` messages; times are ms since 1970 or None."""

    topic: str
    queue_id: int
    messages: int
    size_bytes: int
    min_offset: int
    max_offset: int
    first_stored_ms: int | None
    last_stored_ms: int | None
    bad_crc: int
    gaps: int = 0
    missing: int = 0


@attrs.frozen
class TopicFigures:
    """Numbers of one topic. Latencies are ms from born to stored, None if no message has both times.

    `duplicate_keys` counts unique keys that were sent several times, `extra` the messages beyond their first sends.
    """

    topic: str
    kind: TopicKind
    queues: tuple[QueueFigures, ...]
    p50_ms: int | None = None
    p99_ms: int | None = None
    max_ms: int | None = None
    duplicate_keys: int = 0
    extra: int = 0

    @property
    def messages(self) -> int:
        return sum(queue.messages for queue in self.queues)

    @property
    def size_bytes(self) -> int:
        return sum(queue.size_bytes for queue in self.queues)

    @property
    def gaps(self) -> int:
        return sum(queue.gaps for queue in self.queues)

    @property
    def missing(self) -> int:
        return sum(queue.missing for queue in self.queues)

    @property
    def bad_crc(self) -> int:
        return sum(queue.bad_crc for queue in self.queues)


@attrs.frozen
class StoreReport:
    """All numbers of a report; user topics are first. `latency_steps` matches latency.STEPS_MS, with negative first.

    `over_time` counts messages in INTERVALS equal intervals from the first store time to the last. `gaps` and
    `duplicates` are the first LISTED rows of the jobs of those names.
    """

    path: str
    files: int
    file_bytes: int
    topics: tuple[TopicFigures, ...]
    damage: tuple[Damage, ...]
    latency_steps: tuple[int, ...]
    over_time: tuple[int, ...] = (0,) * INTERVALS
    gaps: tuple[Row, ...] = ()
    duplicates: tuple[Row, ...] = ()

    def total(self, figure: str) -> int:
        """Return the sum of a field of TopicFigures over all topics."""
        return sum(getattr(topic, figure) for topic in self.topics)

    @property
    def queues(self) -> list[QueueFigures]:
        return [queue for topic in self.topics for queue in topic.queues]

    @property
    def first_stored_ms(self) -> int | None:
        return min((queue.first_stored_ms for queue in self.queues if queue.first_stored_ms is not None), default=None)

    @property
    def last_stored_ms(self) -> int | None:
        return max((queue.last_stored_ms for queue in self.queues if queue.last_stored_ms is not None), default=None)


@attrs.frozen
class _Tables:
    """Messages of one store for jobs, all up to the same end; each job reads its own columns only, and nothing is cached."""

    session: SparkSession
    store: str
    end: int

    def of(self, job: ModuleType) -> DataFrame:
        """Return the messages with the columns that a job needs."""
        options = {"columns": ",".join(job.COLUMNS), "endOffset": str(self.end)}
        return self.session.read.format(FORMAT).options(**options).load(self.store)


def collect_report(session: SparkSession, store: str) -> StoreReport:
    """Read a store and compute its report. Raises NoCommitLog."""
    files = list_log_files(Store(store))
    tables = _Tables(session, store, complete_end(Store(store), files))
    return _collect(tables, len(files), sum(file.size for file in files))


def _collect(tables: _Tables, files: int, file_bytes: int) -> StoreReport:
    volumes, latencies = tables.of(volume), tables.of(latency)
    found_gaps, found_duplicates = gaps.gaps(tables.of(gaps)), duplicates.duplicates(tables.of(duplicates))
    topics = _topics(latencies, _queues(volumes, found_gaps), found_duplicates)
    report = StoreReport(
        path=tables.store,
        files=files,
        file_bytes=file_bytes,
        topics=topics,
        damage=tuple(damage_in_parallel(tables.session, tables.store)),
        latency_steps=tuple(latency.histogram(latencies).collect()[0]),
    )
    if report.total("gaps"):
        report = attrs.evolve(report, gaps=_first_rows(found_gaps, "topic", "queueId", "firstMissing"))
    if report.total("duplicate_keys"):
        report = attrs.evolve(report, duplicates=_first_rows(found_duplicates, "topic", "firstPhysicalOffset"))
    return attrs.evolve(report, over_time=_over_time(latencies, report.first_stored_ms, report.last_stored_ms))


def _first_rows(frame: DataFrame, *order: str) -> tuple[Row, ...]:
    return tuple(frame.orderBy(*order).limit(LISTED).collect())


def _queues(messages: DataFrame, found_gaps: DataFrame) -> list[QueueFigures]:
    missing = {(row.topic, row.queueId): row for row in gaps.missing_by_queue(found_gaps).collect()}
    queues = []
    for row in volume.by_queue(messages).collect():
        gap = missing.get((row.topic, row.queueId))
        queues.append(QueueFigures(*row, *((gap.gaps, gap.missing) if gap else ())))
    return sorted(queues, key=lambda queue: (report_order(queue.topic), queue.queue_id))


def _topics(messages: DataFrame, queues: list[QueueFigures], found_duplicates: DataFrame) -> tuple[TopicFigures, ...]:
    latencies = {row.topic: row for row in latency.by_topic(messages).collect()}
    extra = {row.topic: row for row in duplicates.extra_by_topic(found_duplicates).collect()}
    topics = []
    for topic, of_topic in itertools.groupby(queues, key=lambda queue: queue.topic):
        times, copies = latencies[topic], extra.get(topic)
        counts = (copies.duplicateKeys, copies.extra) if copies else (0, 0)
        topics.append(TopicFigures(topic, topic_kind(topic), tuple(of_topic), *times[1:], *counts))
    return tuple(topics)


def _over_time(messages: DataFrame, first_ms: int | None, last_ms: int | None) -> tuple[int, ...]:
    counts = [0] * INTERVALS
    if first_ms is not None and last_ms is not None:
        for row in volume.over_time(messages, first_ms, last_ms, INTERVALS).collect():
            counts[min(row.interval, INTERVALS - 1)] = row.messages
    return tuple(counts)
