"""Runs a module's tests with each form: plain Python, rocketmq-twisted-speed where it is installed, and its model.

`from tests.support.forms import each_form as each_form` does it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pytest

from twisted_mq.protocol.layouts import compiled


def compiled_forms() -> compiled.Forms:
    """Return the compiled functions, also where MQ_COMPILED=off. Skips the test where they are not installed."""
    try:
        return compiled.installed()
    except ModuleNotFoundError:
        pytest.skip("rocketmq-twisted-speed is not installed: make speed")


def read_columns_at(data: object, places: tuple[int, ...]) -> compiled.Columns | None:
    """Read a batch at the places that C reads, as C does: anything that does not fit is left."""
    assert isinstance(data, bytes)
    flag_at, length_at, head_bytes = places[:3]
    entries: list[tuple[int, bytes, bytes]] = []
    begin = 0
    while begin < len(data):
        try:
            (flag,) = struct.unpack_from(">i", data, begin + flag_at)
            (body_bytes,) = struct.unpack_from(">i", data, begin + length_at)
            body = begin + head_bytes
            if body_bytes < 0:
                return None
            (text_bytes,) = struct.unpack_from(">h", data, body + body_bytes)
        except struct.error:
            return None
        text = body + body_bytes + 2
        begin = text + text_bytes
        if text_bytes < 0 or begin > len(data):
            return None
        entries.append((flag, data[body : body + body_bytes], data[text:begin]))
    if not entries:
        return None
    flags, bodies, texts = zip(*entries, strict=True)
    return flags, bodies, texts, len({*map(len, bodies)}) == len({*map(len, texts)}) == 1


def encode_records_at(
    pattern: bytes,
    flags: Sequence[int],
    crcs: Sequence[int],
    bodies: Sequence[bytes],
    properties: Sequence[bytes],
    queue_offset: int,
    physical_offset: int,
    places: tuple[int, ...],
) -> tuple[bytes, list[int]] | None:
    """Write records at the places that C writes. It leaves nothing: the tests here have no values that C leaves."""
    size_at, crc_at, flag_at, length_at, queue_at, physical_at, head, text_at, between = places
    suffix = pattern[head + between :]
    records, sizes = bytearray(), list[int]()
    for number, (flag, crc, body, text) in enumerate(zip(flags, crcs, bodies, properties, strict=True)):
        sizes.append(len(pattern) + len(body) + len(text))
        record = bytearray(pattern[:head] + body + pattern[head : head + between] + text + suffix)
        numbers = {size_at: sizes[-1], crc_at: crc & 0x7FFFFFFF, flag_at: flag, length_at: len(body)}
        for place, value in numbers.items():
            struct.pack_into(">i", record, place, value)
        struct.pack_into(">q", record, queue_at, queue_offset + number)
        struct.pack_into(">q", record, physical_at, physical_offset + len(records))
        struct.pack_into(">h", record, head + len(body) + text_at, len(text) + len(suffix))
        records += record
    return bytes(records), sizes


MODEL = compiled.Forms(read_columns_at, encode_records_at)
"""The compiled functions in Python: how they are called is tested where they are not installed, too."""


@pytest.fixture(scope="module", params=["plain", "compiled", "model"], autouse=True)
def each_form(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        kept = {"plain": compiled.PLAIN, "model": MODEL}.get(request.param)
        patches.setattr(compiled, "forms", compiled_forms() if kept is None else kept)
        yield
