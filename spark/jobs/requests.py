"""Requests of recorded traffic with their answers, and the messages that frames carry."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.batch_entry import read_batch
from twisted_mq.protocol.messages.compression import CompressionError, plain_body
from twisted_mq.protocol.text.java import from_utf8
from twisted_mq.protocol.text.properties import (
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    decode_properties,
)
from twisted_mq.spark.columns.makers import record_batches
from twisted_mq.spark.columns.schema import ARROW_TYPES, columns_named
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.columns.record_columns import intact_records
from twisted_mq.storage.files.mapped_log import LogBytes

_CHANNEL = ("file", "connection")
_RECORD_COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "tags", "keys", "uniqKey", "properties", "body")
_COLUMNS = {
    "file": "string",
    "offset": "bigint",
    **{column.name: column.type for column in columns_named(_RECORD_COLUMNS)},
}
_SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in _COLUMNS.items()])
_DDL = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())

_SENDS = (int(RequestCode.SEND_MESSAGE), int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE))
_PULLS = (int(RequestCode.PULL_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE), int(RequestCode.POP_MESSAGE))
_SEND_FIELDS = (("topic", "queueId", "sysFlag", "properties"), ("b", "e", "f", "i"))
"""Fields of SendMessageRequestHeader, and of V2."""


def requests(frames: DataFrame) -> DataFrame:
    """Return one row per request: the columns of its frame, and result, resultName, remark, latency (ms), answer (offset),
    answerBody.

    These are null without an answer; latency also if the recording has no times. The answer is the first later frame with the
    request's number, on the same connection in the other direction.
    """
    asked = frames.where("not isResponse").drop(
        "isResponse", "flag", "remark", "language", "version", "serialize", "length"
    )
    found = F.struct(
        F.col("offset").alias("answer"),
        F.col("time").alias("answered"),
        F.col("code").alias("result"),
        F.col("name").alias("resultName"),
        "remark",
        F.col("body").alias("answerBody"),
    ).alias("found")
    answers = frames.where("isResponse").select(
        *(F.col(name).alias(f"{name}_") for name in (*_CHANNEL, "opaque", "direction")), found
    )
    same = F.col("opaque") == F.col("opaque_")
    for name in _CHANNEL:
        same &= F.col(name).eqNullSafe(F.col(f"{name}_"))
    behind = F.col("found.answer") > F.col("offset")
    other_way = F.col("direction").isNull() | (F.col("direction") != F.col("direction_"))
    pairs = asked.join(answers, same & behind & other_way & ~F.col("isOneWay"), "left")
    firsts = pairs.groupBy("file", "offset").agg(F.min_by("found", "found.answer").alias("found"))
    latency = (F.unix_micros("found.answered") - F.unix_micros("time")) / 1000
    return asked.join(firsts, ["file", "offset"]).select(
        *asked.columns,
        "found.result",
        "found.resultName",
        "found.remark",
        latency.alias("latency"),
        "found.answer",
        "found.answerBody",
    )


def sent_messages(frames: DataFrame) -> DataFrame:
    """Return the messages in sends, those of batches one by one: file and offset of the frame, and the columns of messages.

    Their queue offsets are not known yet; a queue is -1 if the broker chooses it.
    """
    sends = frames.where(~F.col("isResponse") & F.col("code").isin(*_SENDS))
    return sends.select("file", "offset", "code", "extFields", "body").mapInArrow(_sent, _DDL)


def pulled_messages(asked: DataFrame) -> DataFrame:
    """Return the messages in answers to pulls, from the rows of `requests`: file and offset of the answer, and their columns."""
    pulls = asked.where(F.col("code").isin(*_PULLS) & (F.col("result") == int(ResponseCode.SUCCESS)))
    return pulls.select("file", F.col("answer").alias("offset"), "answerBody").mapInArrow(_pulled, _DDL)


def _pulled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for file, offset, body in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            log = LogBytes(body, file, 0)
            records = intact_records(log, chained(log, 0, log.size), in_place=False)
            for found in record_batches(records, _RECORD_COLUMNS):
                place = [pa.repeat(pa.scalar(one), found.num_rows) for one in (file, offset)]
                yield pa.RecordBatch.from_arrays([*place, *found.columns], schema=_SCHEMA)


def _sent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [
            row
            for columns in zip(*(one.to_pylist() for one in batch.columns), strict=True)
            for row in _messages(*columns)
        ]
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _messages(
    file: str, offset: int, code: int, ext_fields: list[tuple[str, str]], body: bytes
) -> Iterator[tuple[object, ...]]:
    """Return the rows of one send, with _SCHEMA; a batch that cannot be parsed has none."""
    fields = dict(ext_fields)
    names = _SEND_FIELDS["topic" not in fields]
    topic, queue_id, sys_flag, text = (fields.get(name, "") for name in names)
    place = file, offset, topic, int(queue_id or -1), None, None
    try:
        if code == RequestCode.SEND_BATCH_MESSAGE:
            for _, one, properties in read_batch(body):
                yield *place, *_parts(decode_properties(from_utf8(properties))), one
        else:
            yield *place, *_parts(decode_properties(text)), plain_body(body, int(sys_flag or 0))
    except (RecordError, CompressionError):
        return


def _parts(properties: dict[str, str]) -> tuple[object, ...]:
    named = (PROPERTY_TAGS, PROPERTY_KEYS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    return *(properties.get(name) for name in named), list(properties.items())
