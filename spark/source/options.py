"""Options for reading stores. Unknown names are refused: a misspelt option would silently read too much."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from twisted_mq.spark import option_values as values
from twisted_mq.spark.columns.schema import DEFAULT_COLUMNS
from twisted_mq.spark.columns.selection import EVERYTHING, MessageConditions
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.named_options import Parsers, columns, named, one_of, take, text

SMALLEST_PART_BYTES = 4096
WHOLE_LOG = 1 << 63
_CONFIRMED = "confirmed"
_NOT_KNOWN = "files of a store do not show what its replicas have; read the store of a slave instead"
_PATH_NEEDED = """the store directory is needed: load(path); of a table in SQL, whose options Spark hands to no Python source, \
SELECT ... FROM table WITH (path = '...')"""


@attrs.frozen
class FileTimes:
    """The store times of `startTime` and `endTime`, which exclude whole files; None: no bound.

    A condition that Spark pushes down only excludes rows: it must not lose one, whatever the clocks of brokers did.
    """

    start_ms: int | None = None
    end_ms: int | None = None

    @property
    def are_any(self) -> bool:
        return self.start_ms is not None or self.end_ms is not None


NO_TIMES = FileTimes()


@attrs.frozen
class ReadOptions:
    """Options for reading stores.

    | option | meaning | default |
    |---|---|---|
    | path | store directory (storePathRootDir) or its commitlog: path, pattern, s3a or hdfs URI; `load([a, b])` | required |
    | brokerName | column brokerName: a name for each store, with commas between; a batch reads stores of a name as one | null |
    | topic | topics to read, separated by commas | all |
    | topicPattern | regular expression that must match whole topic names | all |
    | queueId | queues to read, separated by commas | all |
    | tags | tags to read, separated by commas | all |
    | startTime | skip messages stored before this time: ms since 1970, or 2026-11-20T23:18:54Z | none |
    | endTime | skip messages stored at this time or later | none |
    | startOffset | physical offset in bytes: skip records that begin before it | 0 |
    | endOffset | physical offset: skip records that begin at it or later | end of log |
    | columns | columns to read, separated by commas, in this order; `all`: every column | all except crcOk, properties |
    | through | `log`: read topics from the whole log; `queues`: from their consume queues, faster for small topics | log |
    | maxPartitionBytes | approximate largest number of bytes that a task reads; 64m, 512k or plain bytes | 64m, more above 600 GB
    |
    | minPartitions | approximate least number of tasks | 1 |
    | maxBytesPerTrigger | streams: approximate largest number of bytes of each store in a batch | no limit |
    | startingOffsets | streams: start of a new stream, `earliest` or `latest` | earliest |
    | failOnDamage | true: damaged bytes fail the query; false: intact records are read, and damage is logged | false |
    | quarantine | directory for damaged and lost bytes as Parquet, with store, file, offset, length, reason | none |
    | failOnDataLoss | true: missing files fail the query; false: they are logged | true |
    """

    paths: tuple[str, ...]
    broker_names: tuple[str, ...] = ()
    selection: MessageConditions = EVERYTHING
    start_offset: int = 0
    end_offset: int = WHOLE_LOG
    asked_end: int | None = attrs.field(default=None, eq=False)
    """The option endOffset; conditions of a query only lower `end_offset`."""
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    through_queues: bool = False
    part_bytes: int | None = None
    min_parts: int = 1
    bytes_per_trigger: int | None = None
    least_offset: int = 0
    from_latest: bool = False
    fail_on_damage: bool = False
    quarantine: str | None = None
    fail_on_data_loss: bool = True
    file_times: FileTimes = NO_TIMES


def _part(name: str, value: str) -> int:
    size = values.size_bytes(name, value)
    if size < SMALLEST_PART_BYTES:
        raise WrongOption(name, value, f"at least {SMALLEST_PART_BYTES} bytes are needed")
    return size


def _path(name: str, value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def _paths(name: str, value: str) -> tuple[str, ...]:
    """Return the paths; Spark passes those of load([a, b]) as JSON."""
    return tuple(json.loads(value))


_SELECTIONS: Parsers = {
    "topic": ("topics", values.names),
    "topicPattern": ("topic_pattern", values.pattern),
    "queueId": ("queue_ids", values.numbers),
    "tags": ("tags", values.names),
    "startTime": ("start_time_ms", values.time_ms),
    "endTime": ("end_time_ms", values.time_ms),
}
"""Option -> field of MessageConditions."""
_READS: Parsers = {
    "path": ("paths", _path),
    "paths": ("paths", _paths),
    "brokerName": ("broker_names", values.names),
    "startOffset": ("start_offset", values.size_bytes),
    "endOffset": ("end_offset", values.size_bytes),
    "columns": ("columns", columns),
    "through": ("through_queues", one_of(log=False, queues=True)),
    "maxPartitionBytes": ("part_bytes", _part),
    "minPartitions": ("min_parts", values.number),
    "maxBytesPerTrigger": ("bytes_per_trigger", values.size_bytes),
    "startingOffsets": ("from_latest", one_of(earliest=False, latest=True)),
    "failOnDamage": ("fail_on_damage", values.truth),
    "quarantine": ("quarantine", text),
    "failOnDataLoss": ("fail_on_data_loss", values.truth),
}
"""Option -> field of ReadOptions."""
_OF_SPARK = ("paths",)
"""Option that Spark sets for load([a, b])."""
OPTION_NAMES = tuple(name for name in {**_READS, **_SELECTIONS} if name not in _OF_SPARK)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options from Spark; their names are not case-sensitive. Raises WrongOption."""
    known = named(given, OPTION_NAMES, _OF_SPARK)
    if known.get("endOffset", "").strip().lower() == _CONFIRMED:
        raise WrongOption("endOffset", _CONFIRMED, _NOT_KNOWN)
    reads = take(known, _READS)
    if not reads.get("paths"):
        raise WrongOption("path", "", _PATH_NEEDED)
    if reads.get("fail_on_damage") and "quarantine" in reads:
        raise WrongOption("quarantine", reads["quarantine"], "cannot be combined with failOnDamage=true")
    selection = MessageConditions(**take(known, _SELECTIONS))
    times = FileTimes(selection.start_time_ms, selection.end_time_ms)
    return ReadOptions(selection=selection, file_times=times, asked_end=reads.get("end_offset"), **reads)
