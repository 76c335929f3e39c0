"""Offsets as JSON."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.bounds import Bound, parse_bound
from twisted_mq.spark.live.offset_maps import EARLIEST, LATEST, flat, nested, parse_offsets

TREE = {"A": {"broker-a": {"0": 17, "1": -2}, "broker-b": {"0": -1}}, "B": {"broker-a": {"3": 0}}}
FLAT = {
    MessageQueue("A", "broker-a", 0): 17,
    MessageQueue("A", "broker-a", 1): -2,
    MessageQueue("A", "broker-b", 0): -1,
    MessageQueue("B", "broker-a", 3): 0,
}


def test_both_forms_say_the_same() -> None:
    assert flat(TREE) == FLAT
    assert nested(dict(reversed(FLAT.items()))) == TREE
    assert list(nested(FLAT)) == ["A", "B"]


def test_an_option_is_read() -> None:
    text = '{"A": {"broker-a": {"0": 17, "1": -2}, "broker-b": {"0": -1}}, "B": {"broker-a": {"3": 0}}}'
    assert parse_offsets("startingOffsets", text) == FLAT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("17", "offsets must look like"),
        ("{", "offsets must look like"),
        ('{"A": {"b": 3}}', "offsets must look like"),
        ('{"A": {"b": {"x": 3}}}', "offsets must look like"),
        ('{"A": {"b": {"0": "x"}}}', "'x' is not an offset"),
        ('{"A": {"b": {"0": -3}}}', "-3 is not an offset"),
        ('{"A": {"b": {"0": true}}}', "True is not an offset"),
        ('{"A": {"b": {"-1": 3}}}', "there is no queue -1"),
    ],
)
def test_wrong_offsets_name_their_option(text: str, reason: str) -> None:
    with pytest.raises(WrongOption, match=reason) as caught:
        parse_offsets("endingOffsets", text)
    assert caught.value.name == "endingOffsets"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("earliest", Bound("startingOffsets", EARLIEST)),
        (" Latest ", Bound("startingOffsets", LATEST)),
        ("group", Bound("startingOffsets", EARLIEST, of_group=True)),
        (
            '{"B": {"broker-a": {"3": 0}}}',
            Bound("startingOffsets", EARLIEST, offsets={MessageQueue("B", "broker-a", 3): 0}),
        ),
    ],
)
def test_a_bound_is_a_word_or_offsets(text: str, bound: Bound) -> None:
    assert parse_bound("startingOffsets", text, EARLIEST) == bound
