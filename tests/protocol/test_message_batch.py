from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import RecordError
from protocol.framing import FrameDecoder
from protocol.message import Message
from protocol.message_batch import BATCH_MESSAGE, BatchEntry, decode_batch, encode_batch, encode_entry, iterate_batch
from tests.support.captures import frames

SEND_BATCH_MESSAGE = 320
ENTRIES = st.builds(BatchEntry, st.integers(-(2**31), 2**31 - 1), st.binary(max_size=50), st.binary(max_size=50))


def recorded_batches() -> list[bytes]:
    commands = FrameDecoder().receive_data(frames("producer_batch"))
    return [command.body for command in commands if command.code == SEND_BATCH_MESSAGE and command.body]


def test_recorded_batches_read_and_encode_again() -> None:
    batches = recorded_batches()
    assert len(batches) == 3
    for body in batches:
        messages = decode_batch(body, "CapBatch")
        assert len(messages) > 1
        assert all(message.unique_key and message.body for message in messages)
        assert encode_batch(messages) == body
        assert b"".join(encode_entry(*entry) for entry in iterate_batch(body)) == body


@given(ENTRIES)
def test_an_entry_is_as_the_layout_builds_it(entry: BatchEntry) -> None:
    data = encode_entry(*entry)
    assert data == BATCH_MESSAGE.build(entry._asdict())
    parsed = BATCH_MESSAGE.parse(data)
    assert (parsed.size, parsed.magic, parsed.body_crc) == (len(data), 0, 0)


@given(st.lists(ENTRIES, max_size=5))
def test_any_batch_reads_back(entries: list[BatchEntry]) -> None:
    assert list(iterate_batch(memoryview(b"".join(encode_entry(*entry) for entry in entries)))) == entries


def test_messages_keep_flag_body_and_properties() -> None:
    messages = [Message("T", b"a", 7, {"TAGS": "x"}), Message("T", b"", 0, {})]
    assert decode_batch(encode_batch(messages), "T") == messages


def test_an_empty_batch_has_no_messages() -> None:
    assert encode_batch([]) == b""
    assert decode_batch(b"") == []


def test_properties_past_their_field_cannot_be_sent() -> None:
    with pytest.raises(RecordError, match="32768 bytes"):
        encode_entry(0, b"", bytes(32768))


@pytest.mark.parametrize(
    ("position", "replacement", "reason"),
    [
        (16, b"\x7f\xff\xff\xff", "a body of 2147483647 bytes"),
        (16, b"\xff\xff\xff\xff", "a body of -1 bytes"),
        (24, b"\x7f\xff", "properties of 32767 bytes"),
        (24, b"\xff\xff", "properties of 65535 bytes"),
    ],
)
def test_lengths_that_lead_astray_are_refused_with_the_entry_s_offset(
    position: int, replacement: bytes, reason: str
) -> None:
    entry = encode_entry(1, b"body", b"ab")
    bad = entry[:position] + replacement + entry[position + len(replacement) :]
    with pytest.raises(RecordError, match=reason) as caught:
        decode_batch(entry + bad)
    assert caught.value.offset == len(entry)


def test_a_rest_too_short_for_an_entry_is_refused() -> None:
    with pytest.raises(RecordError, match="21 bytes left, a batch entry has at least 22"):
        decode_batch(bytes(21))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(RecordError):
        decode_batch(data)
