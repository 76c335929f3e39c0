"""Receipt handles and the infos of pop answers: as Apache's broker writes them, and back."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.names import pop_receipt
from twisted_mq.protocol.names.pop_receipt import (
    Receipt,
    ReceiptError,
    join_infos,
    message_offset_info,
    offset_count_info,
    offset_count_key,
    parse_message_offsets,
    parse_order_counts,
    parse_start_offsets,
    queue_count_info,
    start_offset_info,
)
from twisted_mq.protocol.names.pop_topics import marked_topic, origin_topic, pop_retry_topic, retry_mark

LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
NAMES = st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True)
TOPICS = st.sampled_from(["TopicA", "%RETRY%GroupA_TopicA", "%RETRY%GroupA+TopicA"])
QUEUES = st.dictionaries(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), st.lists(LONGS, min_size=1, max_size=32))


@given(st.builds(Receipt, LONGS, LONGS, LONGS, INTS, st.sampled_from("012"), NAMES, INTS, LONGS))
def test_receipt_is_read_as_it_was_written(receipt: Receipt) -> None:
    assert Receipt.parse(receipt.encode()) == receipt


def read(text: str) -> Receipt | str:
    """Return a receipt, or why it cannot be read."""
    try:
        return Receipt.parse(text)
    except ReceiptError as error:
        return str(error)


PARTS = st.sampled_from(
    ["0", "00", "7", "-1", "+1", "999", "2147483647", "2147483648", "9" * 18, "9" * 19, "", "a", "\u0661", "b\n"]
)


@given(st.lists(PARTS, min_size=5, max_size=10).map(" ".join))
def test_quick_way_reads_what_the_long_way_reads(text: str) -> None:
    quickly = read(text)
    with patch.object(pop_receipt, "_plain", lambda text: None):
        assert read(text) == quickly


def test_receipt_as_apaches_broker_wrote_it() -> None:
    """POP_CK of a revived message, recorded from 5.3.3."""
    text = "0 1795284890422 5000 0 1 broker-a 0 0"
    receipt = Receipt.parse(text)
    assert receipt == Receipt(0, 1795284890422, 5000, 0, "1", "broker-a", 0, 0)
    assert (receipt.encode(), receipt.is_order) == (text, False)
    assert Receipt.parse("5 1 2 999 0 broker-a").is_order


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "6 fields are needed at least, got 1 in ''"),
        ("1 2 3 4 0", "got 5"),
        ("a 2 3 4 0 b 0 0", "ckQueueOffset: a number is needed, got 'a'"),
        ("1 2 3 4000000000 0 b 0 0", "reviveQid: a number is needed, got '4000000000'"),
        ("1 2 3 4 0 b 0 9223372036854775808", "queueOffset"),
    ],
)
def test_damaged_receipt_is_refused_with_the_field(text: str, reason: str) -> None:
    with pytest.raises(ReceiptError) as caught:
        Receipt.parse(text)
    assert reason in str(caught.value)


@given(QUEUES)
def test_infos_are_read_as_they_were_written(queues: dict) -> None:
    by_mark = {(retry_mark(topic), queue): offsets for (topic, queue), offsets in queues.items()}
    starts = join_infos(start_offset_info(*place, offsets[0]) for place, offsets in queues.items())
    messages = join_infos(message_offset_info(*place, offsets) for place, offsets in queues.items())
    assert parse_start_offsets(starts) == {key: offsets[0] for key, offsets in by_mark.items()}
    assert parse_message_offsets(messages) == by_mark


@given(st.dictionaries(st.tuples(TOPICS, INTS, LONGS), INTS))
def test_order_counts_are_read_as_they_were_written(counts: dict) -> None:
    text = join_infos(offset_count_info(*place, count) for place, count in counts.items())
    expected = {
        (retry_mark(topic), offset_count_key(queue, offset)): count for (topic, queue, offset), count in counts.items()
    }
    assert parse_order_counts(text) == expected


def test_infos_have_apaches_form() -> None:
    assert start_offset_info("T", 3, 17) == "0 3 17"
    assert message_offset_info("%RETRY%G_T", 0, [4, 6]) == "1 0 4,6"
    assert offset_count_info("%RETRY%G+T", 3, 18, 1) == "2 qo3%18 1"
    assert queue_count_info("T", 3, 0) == "0 3 0"
    assert parse_start_offsets(None) == parse_message_offsets("") == {}


@pytest.mark.parametrize("text", ["0 1", "0 1 2;0 1 3", "0 1 x", "0 1 2;"])
def test_damaged_info_is_refused(text: str) -> None:
    with pytest.raises(ReceiptError, match=r"needed, got"):
        parse_start_offsets(text)


@given(NAMES, NAMES, st.sampled_from("012"))
def test_topics_of_both_retry_versions_lead_back(topic: str, group: str, mark: str) -> None:
    marked = marked_topic(topic, group, mark)
    assert (origin_topic(marked, group), retry_mark(marked)) == (topic, mark)


def test_retry_topics_have_apaches_names() -> None:
    assert pop_retry_topic("T", "G", False) == "%RETRY%G_T"
    assert pop_retry_topic("T", "G", True) == "%RETRY%G+T"
    with pytest.raises(ValueError, match="0, 1 or 2 is needed, got '7'"):
        marked_topic("T", "G", "7")
