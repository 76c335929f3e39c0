"""Options of the sink."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from pyspark.sql.types import StructType

from twisted_mq.protocol.messages.compression import CompressionType
from twisted_mq.protocol.names.validation import group_fault, topic_fault
from twisted_mq.spark import option_values as values
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.access_options import ACCESS_OPTIONS, access_of
from twisted_mq.spark.live.cluster import Access, Cluster
from twisted_mq.spark.named_options import Parsers, named, positive, take, text
from twisted_mq.spark.sink.bad_rows import OnBadRow
from twisted_mq.spark.sink.columns import Compression, check_columns
from twisted_mq.spark.sink.sending import SendLimits


@attrs.frozen
class SinkOptions:
    """Options for writing to topics.

    | option | meaning | default |
    |---|---|---|
    | topic | topic of rows without a value in the column `topic` | none |
    | group | the producer group that brokers see | SPARK_SINK |
    | batchMessages | largest number of messages in one send | 500 |
    | batchBytes | approximate largest number of bytes in one send; a single message may have 4 MiB | 512k |
    | compression | `zlib`, `lz4`, `zstd`: compress each body; `none` | none |
    | compressOver | size above which bodies are compressed | 4k |
    | onBadRow | for a row that is not a valid message: `fail` ends the query; `skip` logs it; `quarantine` writes it to a
    directory | fail |
    | quarantine | with onBadRow=quarantine: directory or URI for such rows, as Parquet, with the reason | none |
    | sendsInFlight | largest number of sends of a task that are in flight or wait; each queue has one in flight | 8 |
    """

    access: Access
    topic: str | None = None
    group: str = "SPARK_SINK"
    limits: SendLimits = attrs.field(factory=SendLimits)
    compression: Compression = attrs.field(factory=Compression)
    on_bad_row: OnBadRow = OnBadRow.FAIL
    quarantine: str | None = None
    checkpoint: str | None = attrs.field(default=None, eq=False)
    """Directory of the checkpoint of the written stream; known if it is set in the query's options."""


def _topic(name: str, value: str) -> str:
    fault = topic_fault(value)
    if fault is not None:
        raise WrongOption(name, value, fault)
    return value


def _group(name: str, value: str) -> str:
    fault = group_fault(value)
    if fault is not None:
        raise WrongOption(name, value, fault)
    return value


def _kind(name: str, value: str) -> CompressionType | None:
    kinds = {kind.name.lower(): kind for kind in CompressionType}
    word = value.strip().lower()
    if word != "none" and word not in kinds:
        raise WrongOption(name, value, f"none, {', '.join(sorted(kinds))} are known")
    return kinds.get(word)


def _on_bad_row(name: str, value: str) -> OnBadRow:
    word = value.strip().lower()
    if word not in set(OnBadRow):
        raise WrongOption(name, value, f"{', '.join(OnBadRow)} are known")
    return OnBadRow(word)


_SINK: Parsers = {
    "topic": ("topic", _topic),
    "group": ("group", _group),
    "onBadRow": ("on_bad_row", _on_bad_row),
    "quarantine": ("quarantine", text),
}
_CHECKPOINT = "checkpointlocation"
"""Spark's own option, in lower case."""
_LIMITS: Parsers = {
    "batchMessages": ("messages", positive),
    "batchBytes": ("size_bytes", values.size_bytes),
    "sendsInFlight": ("in_flight", positive),
}
_COMPRESSION: Parsers = {
    "compression": ("kind", _kind),
    "compressOver": ("over_bytes", values.size_bytes),
}
OPTION_NAMES = (*ACCESS_OPTIONS, *_SINK, *_LIMITS, *_COMPRESSION)


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the options from Spark; their names are not case-sensitive. Raises WrongOption."""
    known = named(given, OPTION_NAMES)
    limits = SendLimits(**take(known, _LIMITS))
    compression = Compression(**take(known, _COMPRESSION))
    checkpoint = next((value for name, value in given.items() if name.lower() == _CHECKPOINT), None)
    options = SinkOptions(
        access_of(known), limits=limits, compression=compression, checkpoint=checkpoint, **take(known, _SINK)
    )
    if (options.on_bad_row == OnBadRow.QUARANTINE) != (options.quarantine is not None):
        reason = "onBadRow=quarantine and the directory quarantine are needed together"
        raise WrongOption("quarantine", options.quarantine or "", reason)
    return options


def checked_sink(given: Mapping[str, str], schema: StructType, overwrite: bool) -> SinkOptions:
    """Return the options for writing rows of this schema, checked before any task runs.

    Raises WrongOption, WrongColumn; TopicUnknown for the option's topic, NameServersSilent.
    """
    options = sink_options(given)
    if overwrite:
        raise WrongOption("mode", "overwrite", "topics are appended to: mode append")
    check_columns(schema, options.topic)
    if options.topic is not None:
        cluster = Cluster(options.access)
        try:
            cluster.route(options.topic)
        finally:
            cluster.close()
    return options
