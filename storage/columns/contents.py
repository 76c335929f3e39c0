"""Decodes the variable fields of a batch: topics as small numbers, tags as the codes of queue entries."""

from __future__ import annotations

import numpy as np

from twisted_mq.protocol.columns import Mask, Numbers
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.layouts.record_codec import dispatch_fields
from twisted_mq.protocol.messages.delay_levels import DEFAULT_DELAY_TABLE
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.text.properties import PROPERTY_TAGS, decode_property_bytes
from twisted_mq.storage.columns.property_shapes import Shapes, distinct, java_hashes, rows_by_length
from twisted_mq.storage.columns.record_columns import RecordColumns, bytes_at

"""The bit that prepared and rolled back messages have: they enter no queue."""
_TAGS_NAME = PROPERTY_TAGS.encode()
_TAGS = _TAGS_NAME + b"\x01"
_PROPERTY_END = b"\x02"


class Names(dict[bytes, int]):
    """Numbers for topics, in the order of their first occurrence; `texts` has the topics by number."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, topic: bytes) -> int:
        number = self[topic] = len(self.texts)
        self.texts.append(topic.decode("utf-8", "replace"))
        return number

    def numbers_of(self, batch: RecordColumns) -> Numbers:
        """Return the number of each record's topic."""
        numbers = np.zeros(len(batch), np.int64)
        lengths = batch.topic_end - batch.topic
        for rows in rows_by_length(lengths):
            texts = bytes_at(batch.log, batch.topic[rows], int(lengths[rows[0]]))
            firsts, kinds = distinct(texts)
            numbers[rows] = np.array([self[texts[first].tobytes()] for first in firsts.tolist()], np.int64)[kinds]
        return numbers


class TagsCodes(dict[bytes, int]):
    """The codes of tags, each hashed once."""

    def __missing__(self, tags: bytes) -> int:
        code = self[tags] = tags_code(tags.decode("utf-8", "replace"))
        return code

    def of_properties(self, properties: bytes) -> int:
        """Return the tags code of a record's stored properties; 0 without tags."""
        before, name, behind = properties.partition(_TAGS)
        if not name:
            return 0
        if (before and before[-1] != _PROPERTY_END[0]) or _TAGS in behind:
            return tags_code(decode_property_bytes(properties).get(PROPERTY_TAGS))
        return self[behind.partition(_PROPERTY_END)[0]]

    def of_batch(self, batch: RecordColumns, shapes: Shapes) -> Numbers:
        """Return the tags codes for the records' queue entries; for the schedule topic see `scheduled_codes`."""
        codes = np.zeros(len(batch), np.int64)
        for shape in shapes.shapes:
            for tags in shape.values(_TAGS_NAME):
                codes[shape.rows] = java_hashes(tags).view(np.int32)
        codes[shapes.others] = list(map(self.of_properties, batch.property_texts(shapes.others)))
        return codes


def in_queues(batch: RecordColumns) -> Mask:
    """Return the rows that have queue entries."""
    inside: Mask = (batch.sys_flag & OUT_OF_QUEUES) == 0
    return inside


def entry_codes(batch: RecordColumns, topics: Numbers, names: Names, tags: TagsCodes, shapes: Shapes) -> Numbers:
    """Return the tags codes of the records' queue entries; for delayed messages their due time, as in Apache."""
    codes = tags.of_batch(batch, shapes)
    schedule = names.get(SCHEDULE_TOPIC.encode())
    if schedule is not None:
        for row in np.flatnonzero(topics == schedule).tolist():
            codes[row] = _scheduled_code(batch, row)
    return codes


def _scheduled_code(batch: RecordColumns, row: int) -> int:
    try:
        return dispatch_fields(batch.log.data, int(batch.starts[row]), delay_table=DEFAULT_DELAY_TABLE).tags_code
    except RecordError:
        return 0


def odd_records(batch: RecordColumns, topics: Numbers, names: Names) -> Numbers:
    """Return the rows with impossible values: an unprintable topic, a negative queue or queue offset."""
    odd = (batch.queue_id < 0) | (batch.queue_offset < 0)
    for number in np.unique(topics).tolist():
        if not names.texts[number].isprintable() or "\ufffd" in names.texts[number]:
            odd |= topics == number
    return np.flatnonzero(odd)


def groups(topics: Numbers, queue_ids: Numbers, rows: Numbers) -> list[tuple[int, int, Numbers]]:
    """Return (topic number, queue id, rows in order) of each queue that has any of `rows`."""
    if not len(rows):
        return []
    keys = (topics[rows] << 32) | (queue_ids[rows].astype(np.int64) & 0xFFFFFFFF)
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    parts = np.split(rows[order], cuts)
    return [(int(topics[part[0]]), int(queue_ids[part[0]]), part) for part in parts]
