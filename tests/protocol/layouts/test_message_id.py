from __future__ import annotations

import datetime

import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.layouts.host import pack_host, unpack_host, unpack_ip
from twisted_mq.protocol.layouts.message_id import (
    OFFSET_MESSAGE_ID_V4,
    OFFSET_MESSAGE_ID_V6,
    UNIQUE_KEY_V4,
    UNIQUE_KEY_V6,
    MessageIdError,
    UniqueKey,
    UniqueKeyMaker,
    decode_offset_message_id,
    decode_unique_key,
    offset_message_id,
    offset_message_id_pattern,
    offset_message_ids,
)

NOVEMBER = 1793491200000  # 2026-11-01T00:00:00Z
BORN = 1795216734968  # store "st", record 0


def test_offset_id_is_the_one_apache_made() -> None:
    assert offset_message_id(pack_host("127.0.0.2", 20911), 240) == "7F000002000051AF00000000000000F0"
    assert decode_offset_message_id("7F000002000051AF00000000000000F0") == ("127.0.0.2", 20911, 240)


def test_offset_id_of_an_ipv6_broker_has_56_digits() -> None:
    text = offset_message_id(pack_host("2001:db8::1", 10911), 7)
    assert text == "20010DB800000000000000000000000100002A9F0000000000000007"
    assert decode_offset_message_id(text) == ("2001:db8::1", 10911, 7)


@given(
    st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20),
    st.lists(st.integers(0, 2**63 - 1), min_size=1),
)
def test_ids_of_a_batch_are_those_of_its_messages(host: bytes, offsets: list[int]) -> None:
    assert offset_message_ids(host, offsets) == ",".join(offset_message_id(host, offset) for offset in offsets)


@pytest.mark.parametrize("text", ["", "7F", "G" * 32, " " * 32, "7F000002000051AF00000000000000F", "٣" * 32])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(MessageIdError):
        decode_offset_message_id(text)
    with pytest.raises(MessageIdError):
        decode_unique_key(text, BORN)


def test_a_recorded_unique_key_reads_as_its_parts() -> None:
    assert decode_unique_key("C0000202733D4E0E2F2A66D992F80000", BORN + 5) == UniqueKey(
        "192.0.2.2", 0x733D, 0x4E0E2F2A, BORN, 0
    )


def test_a_key_from_the_end_of_last_month_is_dated_there() -> None:
    made = NOVEMBER - 1000
    key = UniqueKeyMaker(b"\x0a\x00\x00\x01", 1, lambda: made).make()
    assert decode_unique_key(key, NOVEMBER + 1000).born_ms == made


def test_keys_count_and_follow_the_clock() -> None:
    now = [BORN]
    maker = UniqueKeyMaker(bytes([192, 0, 2, 2]), 0x733D, lambda: now[0], salt=0x4E0E2F2A)
    first, second = maker.make(), maker.make()
    now[0] += 40
    assert [first, second, maker.make()] == [
        "C0000202733D4E0E2F2A66D992F80000",
        "C0000202733D4E0E2F2A66D992F80001",
        "C0000202733D4E0E2F2A66D993200002",
    ]


def test_the_counter_wraps_after_65536() -> None:
    maker = UniqueKeyMaker(bytes(4), 1, lambda: BORN)
    keys = [maker.make() for _ in range(65537)]
    assert len(set(keys)) == 65536
    assert keys[0] == keys[-1]


def test_a_new_month_starts_the_time_anew() -> None:
    now = [NOVEMBER - 1]
    maker = UniqueKeyMaker(bytes(4), 1, lambda: now[0])
    before = maker.make()
    now[0] = NOVEMBER
    assert before[20:28] == f"{31 * 86400000 - 1:08X}"
    assert maker.make()[20:28] == "00000000"


def test_a_clock_set_back_over_the_month_s_begin_counts_as_the_begin() -> None:
    now = [NOVEMBER + 5]
    maker = UniqueKeyMaker(bytes(4), 1, lambda: now[0])
    maker.make()
    now[0] = NOVEMBER - 500
    assert maker.make()[20:28] == "00000000"


def test_a_clock_set_back_by_1000_s_counts_as_it_is() -> None:
    now = [NOVEMBER + 5]
    maker = UniqueKeyMaker(bytes(4), 1, lambda: now[0])
    maker.make()
    now[0] = NOVEMBER - 1_000_000
    assert maker.make()[20:28] == f"{(1 << 32) - 1_000_000:08X}"


@pytest.mark.parametrize("now_ms", [NOVEMBER, 0], ids=["November 2026", "January 1970"])
def test_the_month_begins_in_the_given_zone(now_ms: int) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=8))
    maker = UniqueKeyMaker(bytes(4), 1, lambda: now_ms, zone=zone)
    key = maker.make()
    assert key[20:28] == f"{8 * 3600000:08X}"
    assert decode_unique_key(key, now_ms + 1, zone).born_ms == now_ms


def test_an_ipv6_key_has_56_digits() -> None:
    key = UniqueKeyMaker(pack_host("2001:db8::1", 0)[:16], 9, lambda: BORN).make()
    assert decode_unique_key(key, BORN + 1) == UniqueKey("2001:db8::1", 9, 0, BORN, 0)


def test_an_address_of_another_length_is_refused() -> None:
    with pytest.raises(MessageIdError, match="5 bytes"):
        UniqueKeyMaker(bytes(5), 1, lambda: 0)


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    for decode in (decode_offset_message_id, lambda key: decode_unique_key(key, BORN)):
        try:
            decode(text)
        except ProtocolError:
            continue


@given(st.sampled_from([OFFSET_MESSAGE_ID_V4, OFFSET_MESSAGE_ID_V6]), st.data())
def test_offset_ids_are_as_their_layout_builds_them(layout: construct.Struct, data: st.DataObject) -> None:
    raw = data.draw(st.binary(min_size=layout.sizeof(), max_size=layout.sizeof()))
    parsed = layout.parse(raw)
    text = offset_message_id(parsed.store_host, parsed.physical_offset)
    assert bytes.fromhex(text) == raw
    assert decode_offset_message_id(text) == (*unpack_host(parsed.store_host), parsed.physical_offset)
    if parsed.physical_offset >= 0:
        assert offset_message_id_pattern(parsed.store_host) % parsed.physical_offset == text
    assert offset_message_ids(parsed.store_host, [parsed.physical_offset] * 2) == f"{text},{text}"


@given(st.sampled_from([(4, UNIQUE_KEY_V4), (16, UNIQUE_KEY_V6)]), st.integers(0, 2**40), st.integers(), st.data())
def test_unique_keys_are_as_their_layout_builds_them(
    kind: tuple[int, construct.Struct], pid: int, salt: int, data: st.DataObject
) -> None:
    size, layout = kind
    address = data.draw(st.binary(min_size=size, max_size=size))
    key = UniqueKeyMaker(address, pid, lambda: NOVEMBER + 77, salt).make()
    assert bytes.fromhex(key) == layout.build(
        {"address": address, "pid": pid & 0xFFFF, "salt": salt & 0xFFFFFFFF, "elapsed_ms": 77, "counter": 0}
    )
    expected = UniqueKey(unpack_ip(address), pid & 0xFFFF, salt & 0xFFFFFFFF, NOVEMBER + 77, 0)
    assert decode_unique_key(key, NOVEMBER + 99) == expected
