"""Selection of messages."""

from __future__ import annotations

import re

import pytest

from tests.spark.stores import BORN_MS, StoreWriter, everything
from twisted_mq.spark.columns.makers import record_batches
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.storage.columns.record_columns import RecordColumns

ROWS = [
    (topic, queue, tags) for topic in ("Orders", "Payments", "Odd") for queue in (0, 1) for tags in ("a", "b", None)
]


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        (MessageConditions(), lambda topic, queue, tags, stored: True),
        (MessageConditions(topics=("Orders", "None")), lambda topic, queue, tags, stored: topic == "Orders"),
        (MessageConditions(topic_pattern=re.compile("O.*")), lambda topic, queue, tags, stored: topic.startswith("O")),
        (MessageConditions(("Orders",), re.compile(".*d")), lambda topic, queue, tags, stored: False),
        (MessageConditions(queue_ids=(1,)), lambda topic, queue, tags, stored: queue == 1),
        (MessageConditions(tags=("b", "c")), lambda topic, queue, tags, stored: tags == "b"),
        (MessageConditions(start_time_ms=BORN_MS + 5), lambda topic, queue, tags, stored: stored >= BORN_MS + 5),
        (MessageConditions(end_time_ms=BORN_MS + 5), lambda topic, queue, tags, stored: stored < BORN_MS + 5),
        (MessageConditions(("Orders",), None, (1,), ("a",), 0, 1 << 60), lambda *row: row[:3] == ("Orders", 1, "a")),
    ],
)
def test_rows_that_are_left(writer: StoreWriter, selection: MessageConditions, wanted) -> None:  # type: ignore[no-untyped-def]
    for topic, queue, tags in ROWS:
        writer.append(topic, b"body", {"TAGS": tags} if tags else b"", queue)
    pieces = [piece for piece in everything(writer.write()) if isinstance(piece, RecordColumns)]
    found = [
        (row["topic"], row["queueId"], row["tags"])
        for piece in pieces
        for batch in record_batches(piece, ("topic", "queueId", "tags"), selection)
        for row in batch.to_pylist()
    ]
    assert found == [row for number, row in enumerate(ROWS) if wanted(*row, BORN_MS + number + 2)]
