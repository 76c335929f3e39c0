from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures import frames
from tests.support.forms import each_form as each_form
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import (
    BATCH_MESSAGE,
    BatchEntry,
    decode_batch,
    encode_batch,
    encode_entry,
    inner_count,
    iterate_batch,
    read_batch,
    read_columns,
    unwrapped,
)
from twisted_mq.protocol.layouts.record_codec import decode_message, encode_record
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.wire.framing import FrameDecoder

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


ALIKE = st.tuples(st.integers(0, 30), st.integers(0, 30)).flatmap(
    lambda sizes: st.lists(
        st.builds(BatchEntry, st.integers(-(2**31), 2**31 - 1), *(st.binary(min_size=n, max_size=n) for n in sizes)),
        min_size=1,
        max_size=5,
    )
)


@given(ALIKE | st.lists(ENTRIES, max_size=5), st.data())
def test_columns_are_those_of_the_entries(entries: list[BatchEntry], data: st.DataObject) -> None:
    """Also of damaged batches, whose refusals are the same."""
    batch = bytearray(b"".join(encode_entry(*entry) for entry in entries))
    assert [*zip(*read_columns(bytes(batch))[:3], strict=True)] == entries
    for _ in range(data.draw(st.integers(0, 2)) if batch else 0):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    damaged = bytes(batch[: data.draw(st.integers(0, len(batch)))])
    found: list[object] = []
    for read in (read_batch, lambda body: [*zip(*read_columns(body)[:3], strict=True)]):
        try:
            found.append(read(damaged))
        except RecordError as error:
            found.append(str(error))
    assert found[0] == found[1]


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


@pytest.mark.parametrize(
    ("properties", "count"),
    [
        ({}, 1),
        ({"INNER_NUM": "7", "INNER_BASE": "0"}, 7),
        ({"INNER_NUM": "7"}, 1),
        ({"INNER_BASE": "7"}, 1),
        *[({"INNER_NUM": number, "INNER_BASE": "0"}, 1) for number in ("0", "-3", "32768", "seven", "")],
    ],
)
def test_a_record_counts_as_the_broker_wrote_it(properties: dict[str, str], count: int) -> None:
    assert inner_count(properties) == count


def stored_batch(body: bytes, sys_flag: int) -> MessageExt:
    record = encode_record(
        b"Batches", body, b"UNIQ_KEY\x01B\x02", queue_id=2, queue_offset=40, physical_offset=0, born_timestamp=1,
        born_host=bytes(8), store_timestamp=2, store_host=bytes(8), sys_flag=sys_flag, flag=5, reconsume_times=3,
    )  # fmt: skip
    return decode_message(record)


INNER = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG


@given(
    st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=9), st.text("abc", min_size=1)), min_size=1, max_size=5)
)
def test_an_inner_batch_is_taken_apart(parts: list[tuple[int, bytes, str]]) -> None:
    whole = stored_batch(encode_batch([Message("", body, flag, {"own": text}) for flag, body, text in parts]), INNER)
    messages = unwrapped(whole)
    assert [(one.flag, one.body, one.properties) for one in messages] == [
        (flag, body, {"own": text}) for flag, body, text in parts
    ]
    assert [one.queue_offset for one in messages] == list(range(40, 40 + len(parts)))
    shared = {
        (one.topic, one.queue_id, one.physical_offset, one.msg_id, one.sys_flag, one.store_size) for one in messages
    }
    assert shared == {("Batches", 2, 0, whole.msg_id, INNER, 0)}


@pytest.mark.parametrize("sys_flag", [0, MessageSysFlag.INNER_BATCH_FLAG, MessageSysFlag.NEED_UNWRAP_FLAG])
def test_other_messages_stay_as_they_are(sys_flag: int) -> None:
    whole = stored_batch(encode_batch([Message("", b"x")]), sys_flag)
    assert unwrapped(whole) == [whole]


def test_a_damaged_inner_batch_is_an_error() -> None:
    with pytest.raises(RecordError, match="5 bytes left"):
        unwrapped(stored_batch(b"short", INNER))


@pytest.mark.parametrize("properties", [b"", b"a\x01b\x02"])
def test_messages_of_one_size_are_read_at_once(properties: bytes) -> None:
    batch = b"".join(encode_entry(flag, b"body", properties) for flag in (1, 2))
    assert read_columns(batch) == ((1, 2), (b"body",) * 2, (properties,) * 2, True)


def test_messages_of_several_sizes_are_not_said_to_be_alike() -> None:
    batch = encode_entry(1, b"body", b"") + encode_entry(2, b"longer", b"")
    assert read_columns(batch) == ((1, 2), (b"body", b"longer"), (b"", b""), False)
    assert read_columns(b"") == ((), (), (), False)


def test_entries_of_other_lengths_may_look_alike() -> None:
    """Where the second entry's properties would have their length, its body has the same bytes as one."""
    data = encode_entry(0, b"ab", b"cd") + encode_entry(0, b"ab\0\2", b"")
    assert read_columns(data) == ((0, 0), (b"ab", b"ab\0\2"), (b"cd", b""), False)


def test_an_entry_has_as_many_properties_as_fit_its_length() -> None:
    most = b"p" * 32767
    assert read_batch(encode_entry(0, b"", most)) == [(0, b"", most)]
    with pytest.raises(RecordError, match="at most 32767"):
        encode_entry(0, b"", most + b"p")
