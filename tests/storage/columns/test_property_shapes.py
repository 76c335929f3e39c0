"""Columns of properties say the same as the readable way, record by record."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.index import key_hash
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.text.java import java_hash, tags_code
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.storage.columns.contents import Names, TagsCodes
from twisted_mq.storage.columns.property_shapes import Shapes, distinct, java_hashes
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import LogFiles, walk_log
from twisted_mq.storage.index.index_keys import record_keys
from twisted_mq.storage.tools.index_tools import BatchKeys

TOPICS = ("A", "B", "TopicLong", "%RETRY%g")
ODD = (
    b"",
    b"TAGS\x01a",
    b"TAGS\x01\x02KEYS\x01\x02",
    b"TAGS\x01a\x02TAGS\x01b\x02",
    b"XTAGS\x01a\x02TAGS\x01b\x01c\x02",
    "TAGS\x01\u00fc\x02KEYS\x01\u20ac x\x02UNIQ_KEY\x01\U0001f600\x02".encode(),
    b"KEYS\x01 a  b\tc \x02UNIQ_KEY\x01u u\x02",
    b"\x02\x02KEYS\x01x\x02\x02",
    b"KEYS\x01\xff\xfe\x02nonsense",
)


def some_properties(source: random.Random) -> bytes:
    if source.random() < 0.1:
        return source.choice(ODD)
    parts = [f"UNIQ_KEY\x01{source.getrandbits(128):032X}\x02"] if source.random() < 0.8 else []
    if source.random() < 0.5:
        words = " ".join(f"order{source.randrange(10 ** source.randint(1, 3))}" for _ in range(source.randint(1, 3)))
        parts.append(f"KEYS\x01{words}\x02")
    if source.random() < 0.7:
        parts.append(f"TAGS\x01{source.choice(('TagA', 'TagB', 'x'))}\x02")
    source.shuffle(parts)
    return "".join(parts).encode()


@pytest.fixture
def batch(open_store: OpenFileStore) -> RecordColumns:
    source = random.Random(7)
    store = open_store(message_index_enable=False, mapped_file_size_commit_log=1 << 20)
    for _ in range(3000):
        rolled_back = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE if source.random() < 0.05 else 0
        topic = source.choice(TOPICS)
        properties = some_properties(source)
        code = tags_code(decode_property_bytes(properties).get("TAGS"))
        put(store, message(topic, body=b"b", properties=properties, sys_flag=rolled_back, tags_code=code))
    store.close()
    (found,) = walk_log(LogFiles(store.config.store_path_root_dir))
    assert isinstance(found, RecordColumns)
    return found


def test_tags_and_keys_of_a_batch_are_those_of_its_records(batch: RecordColumns) -> None:
    shapes, names = Shapes.of(batch), Names()
    alike = sum(len(shape.rows) for shape in shapes.shapes)
    assert alike + len(shapes.others) == len(batch) == 3000
    assert alike > 1000 and len(shapes.shapes) > 20
    topics, codes = names.numbers_of(batch), TagsCodes().of_batch(batch, shapes)
    rows, hashes = BatchKeys(names).of(batch, topics, shapes)
    found: list[list[int]] = [[] for _ in range(len(batch))]
    for row, value in zip(rows.tolist(), hashes.tolist(), strict=True):
        found[row].append(value)
    assert (np.diff(rows) >= 0).all()
    for row, start in enumerate(batch.starts.tolist()):
        record = decode_message(batch.log.data, start)
        assert names.texts[topics[row]] == record.topic
        assert codes[row] == tags_code(record.properties.get("TAGS")), record.properties
        keys = record_keys(record.topic, dict(record.properties), record.sys_flag)
        assert found[row] == [key_hash(key) for key in keys], record.properties


def test_hash_of_each_row_is_javas() -> None:
    texts = [b"C0000202201A4E0E2F2A66E000000001", b"~" * 32, b" " * 32]
    found = java_hashes(np.frombuffer(b"".join(texts), np.uint8).reshape(3, 32))
    assert found.tolist() == [java_hash(text.decode()) & 0xFFFFFFFF for text in texts]


def test_texts_with_equal_sums_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "twisted_mq.storage.columns.property_shapes._odd_numbers", lambda length: np.ones(length, np.uint64)
    )
    texts = np.frombuffer(b"abbaab", np.uint8).reshape(3, 2)
    firsts, kinds = distinct(texts)
    assert [texts[firsts[kind]].tobytes() for kind in kinds.tolist()] == [b"ab", b"ba", b"ab"]
