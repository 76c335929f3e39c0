"""Many records at once give the keys that reading one by one gives, whatever their properties look like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.index import key_hash
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.storage.index import key_collector
from twisted_mq.storage.index.index_keys import record_keys
from twisted_mq.storage.index.key_collector import KeyCollector
from twisted_mq.storage.log.commit_log import CommitLog

HOST, HOST_V6 = bytes(8), bytes(20)
USUAL = ["UNIQ_KEY\x01AC11000100002A9F0000000000000001\x02WAIT\x01true\x02", "UNIQ_KEY\x01short\x02KEYS\x01order-1\x02"]
ODD = st.text("UNIQ_KEYS\x01\x02 aé", max_size=40)
PROPERTIES = st.one_of(
    st.sampled_from(USUAL),
    ODD,
    st.tuples(ODD, st.sampled_from(USUAL)).map("".join),
    st.tuples(st.sampled_from(USUAL), ODD).map("".join),
    st.integers(0, 600).map(lambda count: f"A\x01{'x' * count}\x02UNIQ_KEY\x01{'k' * (count % 70)}\x02"),
)
TOPICS = st.sampled_from(["T", "Orders", "ünï", "T" * 88, "T" * 89, "T" * 127, "T" * 200])
FLAGS = st.sampled_from(
    [0, 0, 0, 1, MessageSysFlag.TRANSACTION_PREPARED_TYPE, MessageSysFlag.TRANSACTION_ROLLBACK_TYPE]
)
RECORDS = st.lists(
    st.tuples(TOPICS, PROPERTIES, FLAGS, st.sampled_from([HOST, HOST, HOST_V6])), min_size=1, max_size=12
)


@pytest.fixture(scope="module", autouse=True, params=[0, 16], ids=["in columns", "few one by one"])
def few(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many records are read one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_collector, "_FEW", request.param)
        yield request.param


def written(log: CommitLog, number: int, topic: str, properties: str, sys_flag: int = 0, host: bytes = HOST) -> Any:
    """Append a record; the keys that it must have."""
    keys = [
        (key_hash(text), log.max_offset, number)
        for text in record_keys(topic, decode_property_bytes(properties.encode()), sys_flag)
    ]
    log.append_bytes(
        encode_record(
            topic.encode(), b"body", properties.encode(), queue_id=0, queue_offset=number,
            physical_offset=log.max_offset, born_timestamp=0, born_host=host, store_timestamp=number,
            store_host=HOST, sys_flag=sys_flag,
        )
    )  # fmt: skip
    return keys


@given(RECORDS, st.integers(1, 4000))
def test_keys_are_those_of_each_record(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, str, int, bytes]], step: int
) -> None:
    log = CommitLog(str(tmp_path_factory.mktemp("log")), 1 << 16, 4096)
    expected = [key for number, record in enumerate(records) for key in written(log, number, *record)]
    collector, found = KeyCollector(log), []
    while collector.position < log.max_offset:
        found += collector.collect(log.max_offset, step).tolist()
    assert found == expected


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from(USUAL)), min_size=1, max_size=6),
    st.integers(1, 8000),
    st.integers(0, 3000),
)
def test_keys_of_long_runs_of_one_size(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, str]], step: int, left_out: int
) -> None:
    """Over the ends of files too, and where the last records may not be read yet."""
    log, expected = CommitLog(str(tmp_path_factory.mktemp("log")), 4096, 4096), []
    for number, (count, properties) in enumerate(runs):
        for _ in range(count):
            log.make_room(200)
            expected += written(log, number, "T", properties)
    collector, found = KeyCollector(log), []
    for end in (max(0, log.max_offset - left_out), log.max_offset):
        before = -1
        while before < collector.position < end:
            before = collector.position
            found += collector.collect(end, step).tolist()
        assert found == [key for key in expected if key[1] < collector.position]
    assert found == expected


@pytest.mark.parametrize(
    "shape",
    ["UNIQ_KEY\x01{:032X}\x02TAGS\x01{}\x02", "KEYS\x01a{:03} b{}\x02UNIQ_KEY\x01{:08}\x02", "TAGS\x01{}\x02", ""],
    ids=["unique", "several", "none", "empty"],
)
@pytest.mark.parametrize("last", ["", "é", "\x01", " "], ids=["alike", "beyond ASCII", "odd", "space"])
def test_keys_of_records_that_are_all_alike_but_the_last(tmp_path: Path, shape: str, last: str) -> None:
    log, expected = CommitLog(str(tmp_path), 1 << 16, 4096), []
    for number in range(20):
        properties = shape.format(number, number % 10, number)
        expected += written(log, number, "Topic", properties)
    properties = shape.format(20, 0, 20)
    if last and properties:
        properties = properties[: -1 - len(last.encode())] + last + "\x02"
    expected += written(log, 20, "Topic", properties)
    assert KeyCollector(log).collect(log.max_offset, 1 << 20).tolist() == expected


def test_a_record_at_the_very_end_of_its_file(tmp_path: Path) -> None:
    """The bytes that are looked at together end where the file ends."""
    size = 0
    for first in (True, False):
        log = CommitLog(str(tmp_path / str(first)), size or 4096, 4096)
        log.append_bytes(
            encode_record(
                b"T", b"", b"UNIQ_KEY\x01k\x02", queue_id=0, queue_offset=0, physical_offset=0, born_timestamp=0,
                born_host=HOST, store_timestamp=7, store_host=HOST,
            )
        )  # fmt: skip
        size = log.max_offset
        assert KeyCollector(log).collect(size, size).tolist() == [(key_hash("T#k"), 0, 7)]


@pytest.mark.parametrize("name", ["KEYS", "UNIQ_KEY"])
@pytest.mark.parametrize("follower", ["", "A\x01b\x02", "KEYS\x01k\x02"])
def test_a_name_at_the_end_of_the_longest_properties_has_no_value(tmp_path: Path, name: str, follower: str) -> None:
    """Not even that of the record behind it."""
    log, expected = CommitLog(str(tmp_path), 1 << 16, 4096), []
    for number, properties in enumerate(["UNIQ_KEY\x01u\x02", f"Longest\x01one\x02{name}\x01", follower]):
        expected += [
            (key_hash(text), log.max_offset, number)
            for text in record_keys("T", decode_property_bytes(properties.encode()), 0)
        ]
        log.append_bytes(
            encode_record(
                b"T", b"body", properties.encode(), queue_id=0, queue_offset=number, physical_offset=log.max_offset,
                born_timestamp=0, born_host=HOST, store_timestamp=number, store_host=HOST,
            )
        )  # fmt: skip
        assert KeyCollector(log).collect(log.max_offset, log.max_offset).tolist() == expected


def test_few_records_are_read_one_by_one_and_more_in_columns(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, odd = CommitLog(str(tmp_path), 1 << 16, 4096), list[int]()
    one_by_one = key_collector._odd_keys

    def noted(view: memoryview, starts: list[int]) -> Any:
        odd.append(len(starts))
        return one_by_one(view, starts)

    monkeypatch.setattr(key_collector, "_odd_keys", noted)
    for number in range(few):
        written(log, number, "T", USUAL[0])
    KeyCollector(log).collect(log.max_offset, 1 << 20)
    written(log, few, "T", USUAL[0])
    KeyCollector(log).collect(log.max_offset, 1 << 20)
    assert odd == ([few] if few else [])
