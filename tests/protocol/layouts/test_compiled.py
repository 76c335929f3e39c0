"""The compiled forms: chosen where they fit, equal to the plain ones, and None for everything that they do not take.

test_batch_entry.py, test_batch_records.py and test_send_batch.py run with both forms.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.forms import compiled_forms
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts import batch_entry, batch_records, compiled
from twisted_mq.protocol.layouts.batch_entry import LEAST_ENTRY_BYTES, encode_entry, read_batch
from twisted_mq.protocol.layouts.derive import Field, LayoutError, Run
from twisted_mq.protocol.layouts.record_codec import encode_record

FLAGS = st.integers(-(2**31), 2**31 - 1)
ENTRIES = st.lists(st.tuples(FLAGS, st.binary(max_size=40), st.binary(max_size=40)), min_size=1, max_size=8)
DAMAGE = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3)
HOST = bytes(8)
PATTERN = encode_record(b"T", b"", b"A\x01b\x02", 1, 2, 3, 4, HOST, 5, HOST)
WHICH = "from twisted_mq.protocol.layouts import compiled; print(compiled.forms == compiled.PLAIN)"


class SomeBytes(bytes):
    """Bytes that are not exactly bytes."""


def read(data: object, places: tuple[int, ...] | None = None) -> Any:
    function = compiled_forms().read_columns
    assert function is not None
    return function(data, batch_entry._places() if places is None else places)


def encode(**changed: Any) -> Any:
    """The records of two messages, whose columns and places may be others."""
    function = compiled_forms().encode_records
    assert function is not None
    arguments = {
        "pattern": PATTERN, "flags": (0, -1), "crcs": (1, 2**32 - 1), "bodies": (b"x", b""), "properties": (b"", b"K\x01v\x02"),
        "queue_offset": 7, "physical_offset": 900, "places": batch_records._places(0, 1),
    }  # fmt: skip
    return function(*(arguments | changed).values())


@given(ENTRIES, DAMAGE, st.integers(0, 200))
def test_a_batch_is_read_as_plain_python_reads_it_or_left_to_it(
    entries: list[tuple[int, bytes, bytes]], damage: list[tuple[int, int]], cut: int
) -> None:
    """Check that C leaves to plain Python what that refuses, and nothing else."""
    batch = bytearray(b"".join(encode_entry(*entry) for entry in entries))
    for place, value in damage:
        batch[place % len(batch)] = value
    data = bytes(batch[: max(1, len(batch) - cut)]) if damage else bytes(batch)
    try:
        wanted = read_batch(data)
    except RecordError:
        assert read(data) is None
        return
    flags, bodies, properties, alike = read(data)
    assert [*zip(flags, bodies, properties, strict=True)] == wanted
    assert alike == (len({*map(len, bodies)}) == len({*map(len, properties)}) == 1)


def entry_of_lengths(body: int, properties: int, padding: int) -> bytes:
    """An entry with these lengths, zeros, and at its end a whole entry of zeros."""
    lengths = struct.pack(">ih", body, properties)
    return bytes(16) + lengths + bytes(padding + LEAST_ENTRY_BYTES)


@pytest.mark.parametrize(
    "data",
    [
        entry_of_lengths(2**31 - 1, 0, 0),
        entry_of_lengths(-(2**31), 0, 0),
        entry_of_lengths(-5, 0, 250),
        entry_of_lengths(0, -1, -1),
        entry_of_lengths(LEAST_ENTRY_BYTES + 1, 0, 0),
        entry_of_lengths(0, LEAST_ENTRY_BYTES + 1, 0),
    ],
    ids=["longest body", "least body", "body before itself", "properties before themselves", "body", "properties"],
)
def test_a_length_that_leads_astray_is_left(data: bytes) -> None:
    """The third and the fourth would seem whole if a negative length were taken."""
    assert read(data) is None


@pytest.mark.parametrize("data", [b"", bytearray(30), memoryview(bytes(30)), SomeBytes(30), "text", None], ids=repr)
def test_anything_but_bytes_with_entries_is_left(data: object) -> None:
    assert read(data) is None


@pytest.mark.parametrize(
    ("bodies", "properties", "alike"),
    [((1, 1, 1), (2, 2, 2), True), ((1, 1, 2), (2, 2, 2), False), ((1, 1, 1), (2, 3, 2), False), ((5,), (0,), True)],
    ids=str,
)
def test_messages_are_alike_if_all_lengths_are(
    bodies: tuple[int, ...], properties: tuple[int, ...], alike: bool
) -> None:
    pairs = zip(bodies, properties, strict=True)
    assert read(b"".join(encode_entry(0, bytes(body), bytes(text)) for body, text in pairs))[3] is alike


def test_the_least_entry_is_read() -> None:
    assert read(bytes(LEAST_ENTRY_BYTES)) == ((0,), (b"",), (b"",), True)


@pytest.mark.parametrize(
    "places",
    [(-1, 16, 20), (17, 16, 20), (12, -1, 20), (12, 17, 20), (0, 0, 3), (0, 0, -9), (0, 0, -(2**31))],
    ids=repr,
)
def test_places_outside_of_an_entry_are_left(places: tuple[int, ...]) -> None:
    assert read(bytes(100), places) is None


def test_records_of_two_messages() -> None:
    records, sizes = encode()
    first = encode_record(b"T", b"x", b"A\x01b\x02", 1, 7, 900, 4, HOST, 5, HOST, body_crc=1)
    second = encode_record(
        b"T", b"", b"K\x01v\x02A\x01b\x02", 1, 8, 900 + len(first), 4, HOST, 5, HOST, flag=-1, body_crc=2**31 - 1
    )
    assert (records, sizes) == (first + second, [len(first), len(second)])


LEFT = {
    "flag too large": {"flags": (0, 2**31)},
    "flag beyond a long": {"flags": (0, -(2**80))},
    "flag that is no number": {"flags": (0, "1")},
    "CRC that is no number": {"crcs": (0, None)},
    "fewer flags": {"flags": (0,)},
    "fewer CRCs": {"crcs": (0,)},
    "fewer bodies": {"bodies": (b"x",)},
    "more properties": {"properties": (b"", b"", b"")},
    "other bytes": {"bodies": (b"x", SomeBytes(3))},
    "a bytearray": {"properties": (bytearray(3), b"")},
    "long properties": {"properties": (b"", bytes(32767 - 3))},
    "last queue offset": {"queue_offset": 2**63 - 2},
    "last physical offset": {"physical_offset": 2**63 - 197},
    "empty pattern": {"pattern": b""},
    "pattern without an end": {"pattern": PATTERN[:-5]},
    "pattern of a longer end": {"pattern": PATTERN + bytes(32768)},
}


@pytest.mark.parametrize("changed", LEFT.values(), ids=LEFT)
def test_messages_that_plain_python_refuses_or_sees_otherwise_are_left(changed: dict[str, Any]) -> None:
    assert encode(**changed) is None


def test_the_longest_properties_are_taken() -> None:
    assert encode(properties=(b"", bytes(32767 - 4)))[1] == [len(PATTERN) + 1, len(PATTERN) + 32767 - 4]


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("value", [-1, -(2**31), 10**6, 2**31 - 1], ids=repr)
def test_places_outside_of_the_pattern_are_left(place: int, value: int) -> None:
    places = [*batch_records._places(0, 1)]
    places[place] = value
    assert encode(places=tuple(places)) is None


@pytest.mark.parametrize(("place", "width"), [*enumerate([4, 4, 4, 4, 8, 8])])
def test_a_field_at_the_end_of_the_head_is_taken_one_over_it_is_left(place: int, width: int) -> None:
    places = [*batch_records._places(0, 1)]
    places[place] = places[6] - width
    assert encode(places=tuple(places)) is not None
    places[place] += 1
    assert encode(places=tuple(places)) is None


@pytest.mark.parametrize("changed", [{"bodies": [b"x", b""]}, {"places": (1, 2)}, {"pattern": "T"}], ids=repr)
def test_arguments_of_another_kind_are_errors(changed: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        encode(**changed)


# What is chosen


@pytest.mark.parametrize(
    "module", [None, SimpleNamespace(FORM=0), SimpleNamespace(FORM=1)], ids=["absent", "off", "other"]
)
def test_plain_python_is_used_without_the_compiled_form_of_this_number(
    module: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rocketmq_twisted_speed", module)
    assert compiled._choose() == compiled.PLAIN


@pytest.mark.parametrize(("value", "plain"), [("off", "True"), ("on", "False"), (None, "False")])
def test_the_environment_switches_it_off(value: str | None, plain: str) -> None:
    compiled_forms()
    environment = {name: text for name, text in os.environ.items() if name != "MQ_COMPILED"}
    environment |= {"MQ_COMPILED": value} if value else {}
    done = subprocess.run([sys.executable, "-c", WHICH], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{plain}\n"


def test_another_format_than_the_compiled_one_is_an_error() -> None:
    run = Run((Field(0, 4, "size", "l"), Field(4, 8, "flag", "q")), "")
    assert compiled.places(run, flag="q", size="l") == (4, 0, 12)
    with pytest.raises(LayoutError, match=r"\{'flag': 'l'\}, the declaration \{'flag': 'q'\}: set MQ_COMPILED=off"):
        compiled.places(run, flag="l")
    with pytest.raises(LayoutError, match=r"the declaration \{'flag': 'q', 'magic': None\}"):
        compiled.places(run, flag="q", magic="l")
