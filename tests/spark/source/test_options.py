"""Options of the source."""

from __future__ import annotations

import pytest

from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.source.options import OPTION_NAMES, ReadOptions, read_options


def test_defaults() -> None:
    assert read_options({"path": "/data/store"}) == ReadOptions("/data/store")


def test_all_options_in_any_case() -> None:
    given = {
        "PATH": "file:///data/store",
        "topic": "Orders, Payments",
        "Columns": "topic,body",
        "startoffset": "1k",
        "endOffset": "4096",
        "SPLIT": "64m",
        "failondamage": "True",
    }
    assert read_options(given) == ReadOptions(
        path="/data/store",
        topics=("Orders", "Payments"),
        columns=("topic", "body"),
        start_offset=1024,
        end_offset=4096,
        split_bytes=64 << 20,
        fail_on_damage=True,
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("topics", "a", "option topics='a': no such option; there are " + ", ".join(OPTION_NAMES)),
        ("topic", " , ", "option topic=' , ': names are needed, with commas between"),
        ("columns", "topic,topic", "option columns='topic,topic': name at least one column, and each once"),
        ("split", "1000", "option split='1000': at least 4096 bytes are needed"),
        ("split", "a lot", "option split='a lot': a number of bytes is needed, such as 67108864 or 64m"),
        ("startOffset", "-1", "option startOffset='-1': a number of bytes is needed, such as 67108864 or 64m"),
        ("failOnDamage", "yes", "option failOnDamage='yes': true or false is needed"),
    ],
)
def test_wrong_options_are_named(name: str, value: str, message: str) -> None:
    with pytest.raises(WrongOption) as raised:
        read_options({"path": "/data/store", name: value})
    assert str(raised.value) == message


def test_unknown_column_names_the_known_ones() -> None:
    with pytest.raises(WrongOption, match="no such column; there are topic, queueId, "):
        read_options({"path": "/data/store", "columns": "topic,queue"})


def test_path_is_needed() -> None:
    with pytest.raises(WrongOption, match=r"the store directory is needed: load\(path\)"):
        read_options({})
    assert set(OPTION_NAMES) == {"path", "topic", "columns", "startOffset", "endOffset", "split", "failOnDamage"}
