"""Options for reading live queues."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from twisted_mq.protocol.messages.subscription import SQL92, SubscriptionError, build_subscription
from twisted_mq.protocol.names.validation import group_fault, topic_fault
from twisted_mq.spark import option_values as values
from twisted_mq.spark.columns.schema import DEFAULT_COLUMNS
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.access_options import ACCESS_OPTIONS, access_of
from twisted_mq.spark.live.bounds import Bound, parse_bound
from twisted_mq.spark.live.cluster import Access
from twisted_mq.spark.live.offset_maps import EARLIEST, LATEST, parse_offsets
from twisted_mq.spark.live.pulling import PullLimits, PullSelection
from twisted_mq.spark.named_options import Parsers, columns, named, one_of, positive, take

DEFAULT_GROUP = "SPARK_SOURCE"


@attrs.frozen
class LiveOptions:
    """Options for reading from a cluster.

    | option | meaning | default |
    |---|---|---|
    | subscribe | topics, separated by commas; `topic` is the same | one of the three |
    | subscribePattern | a regular expression that whole names of topics match; the system's are left out | one of the three |
    | startingOffsets | `earliest`, `latest`, `group`, or JSON, see below | batch: earliest; a new stream: latest |
    | endingOffsets | batch: `latest`, or JSON | latest |
    | startingTimestamp | start with messages stored at this time or later: ms since 1970, or 2026-11-20T23:18:54Z | none |
    | startingOffsetsByTimestamp | the same by queue, in JSON with times instead of offsets | none |
    | startingOffsetsByTimestampStrategy | for a queue without messages from that time on: `latest` (its end) or `error` | latest
    |
    | endingTimestamp | batch: end before messages stored at this time or later | none |
    | endingOffsetsByTimestamp | batch: the same by queue | none |
    | maxOffsetsPerTrigger | stream: largest number of messages in a batch; each queue has a share by its lag | no limit |
    | maxBytesPerTrigger | stream: approximate bytes of a batch, by the mean size of each queue's next messages | no limit |
    | minOffsetsPerTrigger | stream: a batch waits for this many messages, but no longer than maxTriggerDelay | none |
    | maxTriggerDelay | stream: the longest wait between two batches: 30s, 15m, 1h | 15m |
    | minPartitions | approximate least number of tasks; without it one for each queue | 1 |
    | maxRecordsPerPartition | largest number of messages that a task reads | no limit |
    | failOnDataLoss | true: messages deleted before they were read fail the query; false: they are logged and skipped | true |
    | tags | tags that the broker selects by: `new || paid` | all |
    | sql | an SQL92 expression that the broker selects by (its enablePropertyFilter) | all |
    | group | the consumer group that brokers see | SPARK_SOURCE |
    | commitOffsets | stream: true: after each batch the group's offsets become the last read plus one | false |
    | backfill | store directories of brokers, slaves, or copies, separated by commas: messages in them are read there | none |
    | brokerName | with backfill: the broker of each store, separated by commas | none |
    | readFrom | `master` or `slave`: asked first; the others are asked if those do not answer | master |
    | pullMessages | messages that a pull requests; brokers return at most 32 by default | 32 |
    | pullsInFlight | pulls of a task in flight | 32 |
    | columns | columns to read, separated by commas, in this order; `all`: every column | all except crcOk, properties |

    In JSON, `{"Orders": {"broker-a": {"0": 17, "1": -2}}}`, -2 is the earliest and -1 the latest offset; queues that are not
    listed start at the earliest and end at the latest. `group` is the next offset of the group, the earliest if it has consumed
    nothing. With `backfill`, messages in files are read from them, and the rest from brokers, offset by offset; a store may be
    deleted later. Queues of a removed broker fail a stream too; with failOnDataLoss=false they wait for it and the others
    continue.
    """

    access: Access
    starting: Bound | None
    ending: Bound
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    offsets_per_trigger: int | None = None
    bytes_per_trigger: int | None = None
    least_offsets: int | None = None
    trigger_delay_seconds: float = 15 * 60
    min_partitions: int = 1
    records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    selection: PullSelection = attrs.field(factory=PullSelection)
    group: str = DEFAULT_GROUP
    commit_offsets: bool = False
    limits: PullLimits = attrs.field(factory=PullLimits)
    stores: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()
    columns: tuple[str, ...] = DEFAULT_COLUMNS


def _topics(name: str, value: str) -> tuple[str, ...]:
    topics = values.names(name, value)
    for topic in topics:
        fault = topic_fault(topic)
        if fault is not None:
            raise WrongOption(name, value, fault)
    return topics


def _group(name: str, value: str) -> str:
    fault = group_fault(value)
    if fault is not None:
        raise WrongOption(name, value, fault)
    return value


def _tags(name: str, value: str) -> PullSelection:
    try:
        return PullSelection(build_subscription("any", value).sub_string)
    except SubscriptionError as error:
        raise WrongOption(name, value, str(error)) from error


def _sql(name: str, value: str) -> PullSelection:
    if not value.strip():
        raise WrongOption(name, value, "an expression is needed")
    return PullSelection(value, SQL92)


_READS: Parsers = {
    "topic": ("topics", _topics),
    "subscribe": ("topics", _topics),
    "subscribePattern": ("pattern", values.pattern),
    "maxOffsetsPerTrigger": ("offsets_per_trigger", positive),
    "maxBytesPerTrigger": ("bytes_per_trigger", values.size_bytes),
    "minOffsetsPerTrigger": ("least_offsets", positive),
    "maxTriggerDelay": ("trigger_delay_seconds", values.seconds),
    "minPartitions": ("min_partitions", positive),
    "maxRecordsPerPartition": ("records_per_partition", positive),
    "failOnDataLoss": ("fail_on_data_loss", values.truth),
    "tags": ("selection", _tags),
    "sql": ("selection", _sql),
    "group": ("group", _group),
    "commitOffsets": ("commit_offsets", values.truth),
    "backfill": ("stores", values.names),
    "brokerName": ("broker_names", values.names),
    "columns": ("columns", columns),
}
_LIMITS: Parsers = {
    "pullMessages": ("messages", positive),
    "pullsInFlight": ("in_flight", positive),
}
_STRATEGY = "startingOffsetsByTimestampStrategy"
_BOUNDS = tuple(
    f"{end}{what}" for what in ("Offsets", "Timestamp", "OffsetsByTimestamp") for end in ("starting", "ending")
)
OPTION_NAMES = (*ACCESS_OPTIONS, *_READS, *_LIMITS, *_BOUNDS, _STRATEGY, "readFrom")
_ONE_OF = (
    ("topic", "subscribe", "subscribePattern"),
    ("tags", "sql"),
    ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"),
    ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"),
)
"""Options of which at most one may be set."""


def live_options(given: Mapping[str, str]) -> LiveOptions:
    """Parse the options from Spark; their names are not case-sensitive. Raises WrongOption."""
    known = named(given, OPTION_NAMES)
    for names in _ONE_OF:
        both = [name for name in names if name in known]
        if len(both) > 1:
            raise WrongOption(both[1], known[both[1]], f"it is set by {both[0]}")
    if not any(name in known for name in _ONE_OF[0]):
        raise WrongOption("subscribe", "", "topics are needed: set subscribe or subscribePattern")
    _check_backfill(known)
    from_slaves = one_of(master=False, slave=True)("readFrom", known.get("readFrom", "master"))
    return LiveOptions(
        access_of(known, from_slaves=from_slaves),
        _bound(known, "starting", EARLIEST),
        _bound(known, "ending", LATEST) or Bound("endingOffsets", LATEST),
        limits=PullLimits(**take(known, _LIMITS)),
        **take(known, _READS),
    )


def _check_backfill(known: Mapping[str, str]) -> None:
    for name, other in (("backfill", "brokerName"), ("brokerName", "backfill")):
        if name in known and other not in known:
            raise WrongOption(other, "", "backfill and brokerName are needed together: stores, and the broker of each")
    if "backfill" in known and "sql" in known:
        raise WrongOption("sql", known["sql"], "files cannot be filtered by it: read without backfill, or by tags")


def _bound(known: Mapping[str, str], end: str, otherwise: int) -> Bound | None:
    """Return one bound from the options; None if it is not set."""
    offsets, timestamp, by_queue = f"{end}Offsets", f"{end}Timestamp", f"{end}OffsetsByTimestamp"
    strict = one_of(latest=False, error=True)(_STRATEGY, known.get(_STRATEGY, "latest")) and end == "starting"
    if timestamp in known:
        return Bound(timestamp, otherwise, timestamp_ms=values.time_ms(timestamp, known[timestamp]), is_strict=strict)
    if by_queue in known:
        return Bound(by_queue, otherwise, times=parse_offsets(by_queue, known[by_queue]), is_strict=strict)
    return parse_bound(offsets, known[offsets], otherwise) if offsets in known else None
