"""Plain records are read as the decoder of any record reads them; at the first that is not plain the reader stops."""

from __future__ import annotations

import copy
import pickle
from unittest.mock import patch

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts import plain_messages
from twisted_mq.protocol.layouts.plain_messages import decode_plain_messages
from twisted_mq.protocol.layouts.record import span_values
from twisted_mq.protocol.layouts.record_codec import decode_message, encode_record
from twisted_mq.protocol.messages.message import MessageExt, note, with_more

HOSTS = st.sampled_from([bytes(8), b"\x7f\0\0\1\0\0\1\2", bytes(20)])
PROPERTIES = st.sampled_from([b"", b"A\x01b\x02", b"A\x01c\x02", b"\xff\x01d\x02", b"KEYS\x01k 1\x02TAGS\x01t"])
NUMBERS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
SYS_FLAGS = st.sampled_from([0, 0, 4, 1, 0x301, 0x80])
RECORDS = st.builds(
    encode_record, topic=st.sampled_from([b"T", b"T", b"Other", b"\xff", b"L" * 128]),
    body=st.sampled_from([b"", b"x", b"y" * 9]),
    properties=PROPERTIES, queue_id=NUMBERS, queue_offset=LONGS, physical_offset=LONGS, born_timestamp=LONGS,
    born_host=HOSTS, store_timestamp=LONGS, store_host=HOSTS, flag=NUMBERS, sys_flag=SYS_FLAGS,
    reconsume_times=NUMBERS, prepared_transaction_offset=LONGS, body_crc=st.sampled_from([None, None, None, 5]),
)  # fmt: skip


def plainly(data: bytes, offset: int) -> tuple[list[MessageExt], int]:
    """The messages up to the first that is damaged or not plain, by the decoder of any record."""
    messages = []
    while offset < len(data):
        try:
            message = decode_message(data, offset)
        except RecordError:
            break
        is_plain = len(message.topic.encode()) <= 127 and not message.sys_flag & 0xB1
        if not is_plain:
            break
        messages.append(message)
        offset += message.store_size
    return messages, offset


@given(st.lists(RECORDS, max_size=8), st.integers(0, 120), st.integers(0, 30))
def test_any_records_up_to_the_first_that_is_not_plain(records: list[bytes], cut: int, damage: int) -> None:
    data = bytearray(b"".join(records))
    if damage < 3 and data:
        data[(cut * 7) % len(data)] ^= 1 << damage
    whole = bytes(data[: len(data) - cut]) if cut < 100 else bytes(data)
    assert decode_plain_messages(whole) == plainly(whole, 0)


def record(offset: int = 0) -> bytes:
    return encode_record(b"T", b"body", b"KEYS\x01k\x02", 1, offset, 3, 4, bytes(8), 5, bytes(8))


def test_lengths_that_are_alike_are_read_once() -> None:
    with patch.object(plain_messages, "span_values", wraps=span_values) as spans:
        messages, _ = decode_plain_messages(record(7) + record(8) + record(9))
    assert ([one.queue_offset for one in messages], spans.call_count) == ([7, 8, 9], 1)


def test_a_record_without_a_body_is_plain() -> None:
    empty = encode_record(b"T", b"", b"KEYS\x01k\x02", 1, 8, 3, 4, bytes(8), 5, bytes(8))
    messages, end = decode_plain_messages(record(7) + empty + record(9))
    assert ([one.body for one in messages], end) == ([b"body", b"", b"body"], 2 * len(record()) + len(empty))


@pytest.mark.parametrize("place", [-8, -12], ids=["length of the properties", "last byte of the body"])
def test_it_ends_before_a_damaged_record(place: int) -> None:
    damaged = bytearray(record(8))
    damaged[place] += 1
    messages, end = decode_plain_messages(record(7) + bytes(damaged) + record(9))
    assert ([one.queue_offset for one in messages], end) == ([7], len(record()))


def test_it_begins_at_an_offset() -> None:
    data = record(7) + record(8)
    messages, end = decode_plain_messages(data, len(data) // 2)
    assert ([one.queue_offset for one in messages], end) == ([8], len(data))


@pytest.mark.parametrize("before", [True, False], ids=["noted first", "read first"])
def test_notes_are_properties_whenever_these_are_read(before: bool) -> None:
    (message,), _ = decode_plain_messages(record())
    if not before:
        assert message.properties == {"KEYS": "k"}
    note([message], {"MIN_OFFSET": "0"})
    note([message], {"MIN_OFFSET": "1", "MAX_OFFSET": "2"})
    assert message.properties == {"KEYS": "k", "MIN_OFFSET": "1", "MAX_OFFSET": "2"}
    assert message.properties is message.properties


def test_copies_have_what_was_noted() -> None:
    for made in (copy.copy, lambda one: pickle.loads(pickle.dumps(one)), attrs.evolve):
        (message,), _ = decode_plain_messages(record())
        note([message], {"MAX_OFFSET": "2"})
        again = made(message)
        assert (again, again.properties["MAX_OFFSET"], again.msg_id) == (message, "2", "0" * 31 + "3")
        note([again], {"MAX_OFFSET": "3"})
        assert again.properties["MAX_OFFSET"] == "3"


@attrs.frozen(slots=False)
class Extended(MessageExt):
    more: str


def test_a_message_of_a_subclass_equals_one_that_was_made_of_all_fields() -> None:
    (message,), _ = decode_plain_messages(record())
    note([message], {"MAX_OFFSET": "2"})
    made = with_more(Extended, message, more="x")
    assert "properties" not in vars(made)
    assert made == Extended(
        **{field.name: getattr(message, field.name) for field in attrs.fields(MessageExt)}, more="x"
    )
