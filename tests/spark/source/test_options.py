"""Options of the source."""

from __future__ import annotations

import re

import pytest

from twisted_mq.spark.columns.schema import COLUMN_NAMES, DEFAULT_COLUMNS
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.source.options import OPTION_NAMES, FileTimes, ReadOptions, read_options


def test_defaults() -> None:
    assert read_options({"path": "/data/store"}) == ReadOptions(("/data/store",))
    assert set(COLUMN_NAMES) - set(DEFAULT_COLUMNS) == {"properties", "crcOk"}


def test_all_options_in_any_case() -> None:
    given = {
        "PATHS": '["/data/a", "/data/b"]',
        "brokerName": "a, b",
        "topic": "Orders, Payments",
        "topicPattern": "O.*",
        "queueId": "0,3",
        "tags": "new",
        "startTime": "1000",
        "endTime": "1970-01-01T00:00:02",
        "Columns": "topic,body",
        "startoffset": "1k",
        "endOffset": "4096",
        "through": "queues",
        "MAXPARTITIONBYTES": "64m",
        "minPartitions": "7",
        "maxBytesPerTrigger": "1m",
        "startingOffsets": "latest",
        "failondamage": "False",
        "quarantine": "/data/aside",
        "failOnDataLoss": "false",
    }
    assert read_options(given) == ReadOptions(
        paths=("/data/a", "/data/b"),
        broker_names=("a", "b"),
        selection=MessageConditions(("Orders", "Payments"), re.compile("O.*"), (0, 3), ("new",), 1000, 2000),
        columns=("topic", "body"),
        start_offset=1024,
        end_offset=4096,
        through_queues=True,
        part_bytes=64 << 20,
        min_parts=7,
        bytes_per_trigger=1 << 20,
        from_latest=True,
        quarantine="/data/aside",
        fail_on_data_loss=False,
        file_times=FileTimes(1000, 2000),
    )
    assert {name.lower() for name in given} - {"paths"} == {name.lower() for name in OPTION_NAMES} - {"path"}


def test_all_columns() -> None:
    found = read_options({"path": "/data/store", "columns": "all"})
    assert found == ReadOptions(("/data/store",), columns=COLUMN_NAMES)


def test_what_spark_adds_to_tables_means_nothing() -> None:
    assert read_options({"path": "/data/store", "owner": "root", "provider": "rocketmq"}) == ReadOptions(
        ("/data/store",)
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "topics",
            "a",
            "option topics='a': unknown option, did you mean topic?; the options are " + ", ".join(OPTION_NAMES),
        ),
        ("zzz", "a", "option zzz='a': unknown option; the options are " + ", ".join(OPTION_NAMES)),
        ("topic", " , ", "option topic=' , ': names are needed, separated by commas"),
        (
            "topicPattern",
            "(",
            "option topicPattern='(': is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        ("queueId", "1,a", "option queueId='a': a whole number is needed"),
        ("columns", "topic,topic", "option columns='topic,topic': select at least one column, and each once"),
        ("maxPartitionBytes", "1000", "option maxPartitionBytes='1000': at least 4096 bytes are needed"),
        (
            "maxPartitionBytes",
            "a lot",
            "option maxPartitionBytes='a lot': a number of bytes is needed, such as 67108864 or 64m",
        ),
        ("startOffset", "-1", "option startOffset='-1': a number of bytes is needed, such as 67108864 or 64m"),
        (
            "startTime",
            "noon",
            "option startTime='noon': ms since 1970 are needed, or a time such as 2026-11-20T23:18:54Z",
        ),
        ("through", "index", "option through='index': log or queues is needed"),
        ("startingOffsets", "5", "option startingOffsets='5': earliest or latest is needed"),
        ("failOnDamage", "yes", "option failOnDamage='yes': true or false is needed"),
    ],
)
def test_wrong_options_are_named(name: str, value: str, message: str) -> None:
    with pytest.raises(WrongOption) as raised:
        read_options({"path": "/data/store", name: value})
    assert str(raised.value) == message


def test_unknown_column_names_the_known_ones() -> None:
    with pytest.raises(WrongOption, match="unknown column; the columns are topic, queueId, "):
        read_options({"path": "/data/store", "columns": "topic,queue"})


def test_path_is_needed() -> None:
    with pytest.raises(WrongOption, match=r"the store directory is needed: load\(path\)"):
        read_options({})


def test_what_fails_the_query_is_not_put_aside() -> None:
    with pytest.raises(WrongOption, match="cannot be combined with failOnDamage=true"):
        read_options({"path": "/data/store", "failOnDamage": "true", "quarantine": "/data/aside"})
