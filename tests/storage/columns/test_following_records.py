"""The records that follow each other: compiled code finds what plain Python proves, whatever the bytes are."""

from __future__ import annotations

import random
import zlib
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.forms import compiled_forms
from twisted_mq.protocol.layouts import compiled, record_columns
from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, IPV6_HOST_BYTES
from twisted_mq.protocol.layouts.record import BLANK_BYTES, HEAD_BYTES, SMALLEST_RECORD, encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.protocol.layouts.record_columns import SpanColumns, walk_records
from twisted_mq.storage.columns.record_columns import RecordColumns, following_records
from twisted_mq.storage.files.mapped_log import LogBytes

FIRST = 3 << 30
HOSTS = st.sampled_from([bytes(range(1, IPV4_HOST_BYTES + 1)), bytes(range(1, IPV6_HOST_BYTES + 1))])
MESSAGES = st.tuples(
    st.binary(max_size=30),
    st.sampled_from([0, 1, 127, 128, 300]),
    st.binary(max_size=20),
    HOSTS,
    HOSTS,
    st.integers(-9, 9),
)
TAILS = st.one_of(st.just(b""), st.binary(max_size=120), st.just(bytes(300)), st.just(encode_blank(200) + bytes(192)))
DAMAGE = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=2)
LENGTHS = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from([b"\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\x80"])),
    max_size=2,
)


def log_of(messages: list[tuple[Any, ...]], tail: bytes = b"") -> bytearray:
    """Records of both versions and with both kinds of hosts, one after the other."""
    data = bytearray()
    for body, topic_bytes, properties, born_host, store_host, number in messages:
        data += encode_record(
            b"t" * topic_bytes,
            body,
            properties,
            number,
            number,
            FIRST + len(data),
            number,
            born_host,
            number,
            store_host,
        )
    return data + tail


def read(data: bytes, position: int, end: int, *, plain: bool) -> RecordColumns:
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(compiled, "forms", compiled.PLAIN if plain else compiled_forms())
        if not plain:
            assert walk_records(data, position, end, FIRST) is not None
        return following_records(LogBytes(data, "log", FIRST), position, end)


def as_values(records: RecordColumns) -> dict[str, Any]:
    columns = {field.name: getattr(records, field.name) for field in attrs.fields(RecordColumns) if field.name != "log"}
    return {name: (str(column.dtype), column.tolist()) for name, column in columns.items()}


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGES, max_size=8), TAILS, DAMAGE, LENGTHS, st.data())
def test_both_forms_find_the_same(
    messages: list[tuple[Any, ...]],
    tail: bytes,
    damage: list[tuple[int, int]],
    lengths: list[tuple[int, bytes]],
    draw: st.DataObject,
) -> None:
    """Records of both versions and all hosts, damaged bytes and lengths, cuts, blanks, zeros, any begin and end."""
    log = log_of(messages, tail)
    for place, value in damage if log else ():
        log[place % len(log)] = value
    for place, length in lengths if log else ():
        at = place % len(log)
        log[at : at + len(length)] = length[: len(log) - at]
    data = bytes(log[: len(log) - draw.draw(st.sampled_from([0, 0, 1, 40]))])
    starts = read(data, 0, len(data), plain=True).ends.tolist()
    position = draw.draw(st.sampled_from([0, *starts, 1, 50]))
    end = draw.draw(st.sampled_from([len(data), len(data) + 9, *starts, 0, 77]))
    assert as_values(read(data, position, end, plain=False)) == as_values(read(data, position, end, plain=True))


def test_thousands_of_records_are_the_same() -> None:
    messages = [
        (b"x" * (n % 40), 1 + n % 3, b"K\1v\2", bytes(8), bytes(20) if n % 9 == 8 else bytes(8), n % 5)
        for n in range(3000)
    ]
    data = bytes(log_of(messages, encode_blank(400) + bytes(392)))
    found = read(data, 0, len(data), plain=False)
    assert len(found) == 3000
    assert as_values(found) == as_values(read(data, 0, len(data), plain=True))


@pytest.mark.parametrize("place", range(HEAD_BYTES + 8))
def test_each_byte_of_a_head_and_its_lengths_counts_in_both_forms(place: int) -> None:
    message = (b"body", 1, b"K\1v\2", bytes(8), bytes(8), 1)
    for change in (0x01, 0x10, 0x20, 0x80):
        log = log_of([message] * 3)
        log[len(log) // 3 + place] ^= change
        data = bytes(log)
        assert as_values(read(data, 0, len(data), plain=False)) == as_values(read(data, 0, len(data), plain=True))


@pytest.mark.parametrize(("topic_bytes", "length_bytes"), [(3, 1), (200, 2)])
def test_a_negative_topic_length_ends_the_walk_though_the_rest_would_add_up(
    topic_bytes: int, length_bytes: int
) -> None:
    """The length of the properties would be read from the body's end, which has the one that fits."""
    log = log_of([(bytes(9), topic_bytes, b"", bytes(8), bytes(8), 1)])
    (topic,) = read(bytes(log), 0, len(log), plain=True).topic.tolist()
    back = length_bytes + 2
    log[topic - length_bytes : topic] = (-back).to_bytes(length_bytes, "big", signed=True)
    log[topic - back : topic - length_bytes] = (len(log) - topic + length_bytes).to_bytes(2, "big")
    for plain in (True, False):
        assert len(read(bytes(log), 0, len(log), plain=plain)) == 0


def test_a_log_of_another_offset_has_no_record_here() -> None:
    data = bytes(log_of([(b"body", 1, b"", bytes(8), bytes(8), 1)] * 3))
    found = compiled_forms().walk_records
    assert found is not None
    assert found(data, 0, len(data), FIRST + 1, record_columns._walked_layout()) == (bytearray(), bytearray())
    heads, columns = found(data, 0, len(data), FIRST, record_columns._walked_layout()) or (b"", b"")
    assert (len(heads), len(columns)) == (3 * HEAD_BYTES, 3 * 8 * (1 + len(SpanColumns._fields)))


@pytest.mark.parametrize("size", [0, 1, BLANK_BYTES, SMALLEST_RECORD - 1])
def test_fewer_bytes_than_a_record_have_none(size: int) -> None:
    assert len(read(bytes(size), 0, size, plain=False)) == 0


@pytest.mark.parametrize("number", range(23))
@pytest.mark.parametrize("value", [-1, -(2**31), 1 << 17, 2**31 - 1, 3], ids=repr)
def test_a_layout_that_leads_outside_of_a_record_is_left(number: int, value: int) -> None:
    """The numbers that no place depends on are magics, the mask and the flags of hosts."""
    layout = np.frombuffer(record_columns._walked_layout(), np.int32).copy()
    log = bytes(log_of([(b"body", 1, b"", bytes(8), bytes(8), 1)]))
    walk = compiled_forms().walk_records
    assert walk is not None
    is_place = number not in (4, 7, 9, *range(11, len(layout), 3))
    layout[number] = value
    found = walk(log, 0, len(log), FIRST, layout.tobytes())
    if is_place and value != 3:
        assert found is None
    elif found is not None:
        assert len(found[0]) in (0, layout[5])


@pytest.mark.parametrize(
    "data", [bytearray(200), memoryview(bytes(200)), "text", None, np.zeros(200, np.uint8)], ids=type
)
def test_anything_but_bytes_is_left(data: object) -> None:
    layout, forms = record_columns._walked_layout(), compiled_forms()
    assert forms.walk_records is not None
    assert forms.crc32s is not None
    assert forms.walk_records(data, 0, 200, 0, layout) is None
    assert forms.walk_records(bytes(200), -1, 200, 0, layout) is None
    assert forms.walk_records(bytes(200), 0, 200, 0, layout[:-4]) is None
    assert forms.crc32s(data, bytes(8), bytes(8)) is None


def test_random_bytes_have_the_same_records_in_both_forms() -> None:
    """Also those that begin like a record: a true head, and lengths of chance."""
    chance = random.Random(7)
    head = bytes(log_of([(b"", 0, b"", bytes(8), bytes(8), 0)]))[:HEAD_BYTES]
    for _ in range(400):
        begin = bytearray(head)
        begin[39] = chance.choice([0, 0x10, 0x20, 0x30])
        begin[:4] = chance.choice([91, 95, 120, 200, 2**31 - 1, chance.getrandbits(31)]).to_bytes(4, "big")
        begin[HEAD_BYTES - 4 :] = chance.choice([b"\0\0\0\x05", chance.randbytes(4)])
        data = bytes(begin) + chance.randbytes(chance.randrange(160))
        assert as_values(read(data, 0, len(data), plain=False)) == as_values(read(data, 0, len(data), plain=True))


# CRCs of spans


def int64s(*numbers: int) -> bytes:
    return np.array(numbers, np.int64).tobytes()


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=6))
def test_crcs_are_those_of_zlib(data: bytes, spans: list[tuple[int, int]]) -> None:
    inside = [(min(a, b, len(data)), min(max(a, b), len(data))) for a, b in spans]
    compute = compiled_forms().crc32s
    assert compute is not None
    found = compute(data, int64s(*[a for a, _ in inside]), int64s(*[b for _, b in inside]))
    assert np.frombuffer(found or b"", np.uint32).tolist() == [zlib.crc32(data[a:b]) for a, b in inside]


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        ((-1,), (3,)),
        ((4,), (3,)),
        ((0,), (9,)),
        ((9,), (9,)),
        ((0, 0), (8, 2**63 - 1)),
        ((0,), ()),
        ((-(2**63),), (8,)),
    ],
    ids=repr,
)
def test_a_span_outside_of_the_bytes_is_left(begins: tuple[int, ...], ends: tuple[int, ...]) -> None:
    compute = compiled_forms().crc32s
    assert compute is not None
    assert compute(bytes(8), int64s(*begins), int64s(*ends)) is None
    assert compute(bytes(8), bytes(7), bytes(7)) is None


@pytest.mark.parametrize("body_bytes", [0, 5, record_columns._LONG_SPAN, record_columns._LONG_SPAN + 1])
def test_wrong_bodies_are_the_same(body_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of([(b"x" * body_bytes, 1, b"", bytes(8), bytes(8), 1)] * 9)
    records = read(bytes(log), 0, len(log), plain=True)
    for row in (2, 8):
        log[int(records.body_end[row]) - 1] ^= 64 * (body_bytes > 0)
    damaged = attrs.evolve(records, log=LogBytes(bytes(log), "log", FIRST))
    copied: list[list[bytes]] = []

    def copy() -> list[bytes]:
        copied.append(damaged.texts(damaged.body, damaged.body_end))
        return copied[0]

    for form, copies in ((compiled.PLAIN, 1), (compiled_forms(), int(body_bytes > record_columns._LONG_SPAN))):
        monkeypatch.setattr(compiled, "forms", form)
        copied.clear()
        assert damaged.wrong_bodies(copy).tolist() == [2, 8] * (body_bytes > 0)
        assert len(copied) == copies
