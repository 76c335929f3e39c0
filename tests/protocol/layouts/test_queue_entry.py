from __future__ import annotations

import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures import expected, stored_file
from twisted_mq.protocol.layouts.derive import derive_dtype
from twisted_mq.protocol.layouts.queue_entry import (
    BATCH_ENTRY,
    BATCH_ENTRY_BYTES,
    BATCH_QUEUE_ENTRY,
    ENTRY_BYTES,
    EXTENSION_END,
    EXTENSION_HEAD,
    FILLER_ENTRY,
    NO_COMPACT_OFFSET,
    QUEUE_ENTRY,
    QUEUE_EXTENSION_END,
    QUEUE_EXTENSION_UNIT,
    encode_extension_unit,
    entries_struct,
    extension_address,
    extension_offset,
    is_extension_address,
    iterate_batch_entries,
    iterate_entries,
    pack_entry,
    read_extension_unit,
    unpack_entry,
    written_bytes,
)

LONG = st.integers(-(2**63), 2**63 - 1)


def test_a_recorded_queue_reads_as_apache_read_it_and_packs_again() -> None:
    queues = [line for line in expected("st") if line["kind"] == "queue" and line["maxOffset"] <= 20]
    assert len(queues) > 20
    for line in queues:
        name = f"consumequeue/{line['topic']}/{line['queueId']}/00000000000000000000"
        entries = line["entries_offset_pos_size_tagsCode"]
        content = stored_file("st", name)[: len(entries) * ENTRY_BYTES]
        found = [[offset, *entry] for offset, entry in enumerate(iterate_entries(content))]
        assert found == entries
        assert b"".join(pack_entry(*entry[1:]) for entry in entries) == content


@given(LONG, st.integers(-(2**31), 2**31 - 1), LONG)
def test_any_entry_is_as_the_layout_builds_it(offset: int, size: int, code: int) -> None:
    data = QUEUE_ENTRY.build({"physical_offset": offset, "size": size, "tags_code": code})
    assert pack_entry(offset, size, code) == data
    assert unpack_entry(b"--" + data, 2) == (offset, size, code)


def test_entries_back_to_back() -> None:
    assert entries_struct(2).pack(1, 2, 3, 4, 5, 6) == pack_entry(1, 2, 3) + pack_entry(4, 5, 6)


@given(
    st.tuples(
        LONG,
        st.integers(-(2**31), 2**31 - 1),
        LONG,
        LONG,
        LONG,
        st.integers(-(2**15), 2**15 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
    )
)
def test_any_batch_entry_is_as_the_layout_builds_it(entry: tuple[int, ...]) -> None:
    names = [one.name for one in BATCH_QUEUE_ENTRY.subcons]
    data = BATCH_QUEUE_ENTRY.build(dict(zip(names, entry, strict=True)))
    assert BATCH_ENTRY.pack(*entry) == data
    assert list(iterate_batch_entries(data * 2)) == [entry, entry]
    assert derive_dtype(BATCH_QUEUE_ENTRY).itemsize == len(data) == BATCH_ENTRY_BYTES


def test_sizes_are_apache_s() -> None:
    assert (ENTRY_BYTES, BATCH_ENTRY_BYTES, EXTENSION_HEAD.size) == (20, 46, 20)
    assert bytes.fromhex("0000000000000000" "7fffffff" "0000000000000000") == FILLER_ENTRY  # fmt: skip


def test_an_entry_outside_of_compacted_topics_ends_as_apache_s() -> None:
    entry = BATCH_ENTRY.pack(100, 200, 3, 4, 5, 6, NO_COMPACT_OFFSET, 0)
    assert entry[-10:].hex() == "0006" "ffffffff" "00000000"  # fmt: skip


@given(LONG, LONG, st.binary(max_size=100))
def test_an_extension_unit_counts_its_own_sizes(code: int, time: int, bits: bytes) -> None:
    data = QUEUE_EXTENSION_UNIT.build({"tags_code": code, "msg_store_time": time, "filter_bit_map": bits})
    parsed = QUEUE_EXTENSION_UNIT.parse(data)
    assert (parsed.size, parsed.bit_map_size, parsed.filter_bit_map) == (len(data), len(bits), bits)
    assert EXTENSION_HEAD.unpack_from(data) == (len(data), code, time, len(bits))
    assert encode_extension_unit(code, time, bits) == data
    assert read_extension_unit(memoryview(b"--" + data), 2) == (code, time, bits)


@given(st.binary(max_size=30), st.integers(0, 60), st.integers(0, 255))
def test_a_damaged_extension_unit_is_none_where_construct_does_not_end_with_it(
    bits: bytes, place: int, byte: int
) -> None:
    data = bytearray(encode_extension_unit(1, 2, bits))
    data[place % len(data)] = byte
    try:
        parsed = QUEUE_EXTENSION_UNIT.parse(bytes(data))
        whole = parsed.size == EXTENSION_HEAD.size + len(parsed.filter_bit_map)
    except construct.ConstructError:
        whole = False
    assert (read_extension_unit(memoryview(bytes(data)), 0) is not None) is whole


def test_the_end_of_an_extension_file_is_the_layout_s() -> None:
    assert QUEUE_EXTENSION_END.build({}) == EXTENSION_END == b"\xff\xff"


@given(st.lists(st.tuples(LONG, st.sampled_from([0, 0, 1, -1, 256, 1 << 24, 2**31 - 1]), LONG), max_size=20))
def test_entries_end_before_the_first_of_size_0(entries: list[tuple[int, int, int]]) -> None:
    data = memoryview(b"".join(pack_entry(*entry) for entry in entries))
    sizes = [parsed.size for parsed in construct.GreedyRange(QUEUE_ENTRY).parse(bytes(data))]
    assert written_bytes(data) == ENTRY_BYTES * (sizes.index(0) if 0 in sizes else len(sizes))


@pytest.mark.parametrize(
    ("code", "is_address"), [(-(2**63), True), (-(2**31) - 1, True), (-(2**31), False), (0, False), (2**31, False)]
)
def test_a_tags_code_below_every_int_is_an_address(code: int, is_address: bool) -> None:
    assert is_extension_address(code) is is_address


@given(st.integers(0, 2**63 - 2**31 - 1))
def test_addresses_lead_back_to_their_offsets(offset: int) -> None:
    address = extension_address(offset)
    assert is_extension_address(address)
    assert extension_offset(address) == offset
    assert extension_address(address) == address
