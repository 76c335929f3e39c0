from __future__ import annotations

import tarfile

import pytest

from tests.support.captures import CAPTURES, expected, expected_messages
from twisted_mq.protocol.layouts import index as layout
from twisted_mq.protocol.layouts.index import (
    DEFAULT_ENTRIES,
    DEFAULT_SLOTS,
    ENTRY,
    HEADER,
    SLOT,
    entry_position,
    file_bytes,
    index_key,
    key_hash,
    slot_position,
    time_diff_seconds,
)
from twisted_mq.protocol.text.java import java_hash

SLOTS, ENTRIES = 40, 120  # of store "st"


def index_files() -> list[bytes]:
    """The index files of store "st", oldest first."""
    found = {}
    with tarfile.open(CAPTURES / "store" / "st.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member) if "/index/" in member.name else None
            if content is not None:
                found[member.name] = content.read()
    return [found[name] for name in sorted(found)]


def entries_of(content: bytes) -> list[tuple[int, ...]]:
    count = HEADER.unpack_from(content)[5]
    return [ENTRY.unpack_from(content, entry_position(index, SLOTS)) for index in range(1, count)]


def test_recorded_files_have_the_expected_size() -> None:
    assert {len(content) for content in index_files()} == {file_bytes(SLOTS, ENTRIES)}
    assert file_bytes(DEFAULT_SLOTS, DEFAULT_ENTRIES) == 420_000_040


def test_recorded_entries_are_of_messages_with_that_key() -> None:
    messages = {line["commitLogOffset"]: line for line in expected_messages("st")}
    seen = 0
    for content in index_files():
        begin = HEADER.unpack_from(content)[0]
        for hash_value, physical_offset, seconds, _ in entries_of(content):
            line = messages[physical_offset]
            properties = line["properties"]
            keys = [properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split()]
            assert hash_value in [key_hash(index_key(line["topic"], key)) for key in keys]
            assert seconds == time_diff_seconds(begin, line["storeTimestamp"])
            seen += 1
    assert seen > 300


def test_following_the_slots_finds_what_apache_found() -> None:
    files = index_files()
    queries = [line for line in expected("st") if line["kind"] == "index_query"]
    messages = {line["commitLogOffset"]: line for line in expected_messages("st")}
    for query in queries:
        hash_value = key_hash(index_key(query["topic"], query["key"]))
        found = []
        for content in files:
            (index,) = SLOT.unpack_from(content, slot_position(hash_value, SLOTS))
            while index != layout.INVALID_INDEX:
                entry_hash, offset, _, index = ENTRY.unpack_from(content, entry_position(index, SLOTS))
                if entry_hash == hash_value and messages[offset]["topic"] == query["topic"]:
                    found.append(offset)
        assert set(query["physicalOffsets"]) <= set(found)


def test_hashes_have_no_sign_and_the_one_without_positive_form_is_zero() -> None:
    negative = "CapOrder#ok9"
    assert key_hash(negative) == abs(java_hash(negative))
    assert java_hash("polygenelubricants") == -(2**31)
    assert key_hash("polygenelubricants") == 0


@pytest.mark.parametrize(
    ("begin", "stored", "seconds"),
    [(0, 5000, 0), (-1, 5000, 0), (1000, 2999, 1), (5000, 1000, 0), (1, 2**50, 2**31 - 1)],
)
def test_the_time_field_is_whole_seconds_within_its_range(begin: int, stored: int, seconds: int) -> None:
    assert time_diff_seconds(begin, stored) == seconds


@pytest.mark.parametrize(
    ("bits", "positive"),
    [(0, 0), (0x7FFFFFFF, 0x7FFFFFFF), (0x80000000, 0), (0x80000001, 0x7FFFFFFF), (0xFFFFFFFF, 1)],
)
def test_hashes_are_without_sign_as_javas_abs_makes_them(bits: int, positive: int) -> None:
    assert layout.positive_hash(bits) == positive
