from __future__ import annotations

import contextlib
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.messages.compression import (
    CompressionError,
    CompressionType,
    compress,
    compression_type,
    decompress,
    plain_body,
)

KINDS = list(CompressionType)
BODIES = [b"", b"x", b"0123456789" * 500, bytes(range(256)) * 1000]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("body", BODIES, ids=len)
def test_bodies_survive(kind: CompressionType, body: bytes) -> None:
    assert decompress(compress(body, kind), kind) == body


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_body_of_exactly_the_limit_passes_and_one_byte_more_is_refused(kind: CompressionType) -> None:
    packed = compress(b"a" * 100_000, kind)
    assert len(decompress(packed, kind, limit=100_000)) == 100_000
    with pytest.raises(CompressionError, match="limit of 99999 bytes"):
        decompress(packed, kind, limit=99_999)


def zstd_stream(size: int) -> bytes:
    """As Apache's writer makes it: without the content size in the frame's head."""
    stream = zstandard.ZstdCompressor(level=5).compressobj()
    return stream.compress(bytes(size)) + stream.flush()


@pytest.mark.parametrize("kind", [*KINDS, "stream"], ids=str)
def test_a_bomb_is_refused_without_taking_its_memory(kind: CompressionType | str) -> None:
    size, limit = 64 * 1024 * 1024, 1024 * 1024
    if kind == "stream":
        kind, bomb = CompressionType.ZSTD, zstd_stream(size)
    else:
        kind = CompressionType(kind)
        bomb = compress(bytes(size), kind)
    tracemalloc.start()
    with pytest.raises(CompressionError, match="limit"):
        decompress(bomb, kind, limit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < limit + 24 * 1024 * 1024


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_cut_body_is_refused(kind: CompressionType, cut: int) -> None:
    with pytest.raises(CompressionError):
        decompress(compress(b"0123456789" * 500, kind)[:-cut], kind)


def test_a_cut_zstd_stream_is_refused() -> None:
    with pytest.raises(CompressionError, match="ends early"):
        decompress(zstd_stream(100_000)[:-2], CompressionType.ZSTD)


@given(st.sampled_from(KINDS), st.binary(max_size=200))
def test_no_bytes_raise_anything_else(kind: CompressionType, data: bytes) -> None:
    with contextlib.suppress(CompressionError):
        assert len(decompress(data, kind, limit=1000)) <= 1000


@given(st.sampled_from(KINDS), st.data())
def test_no_damaged_body_raises_anything_else(kind: CompressionType, data: st.DataObject) -> None:
    packed = bytearray(compress(b"0123456789" * 50, kind))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CompressionError):
        decompress(bytes(packed), kind, limit=100_000)


@pytest.mark.parametrize(
    ("sys_flag", "kind"),
    [
        (0x1, CompressionType.ZLIB),
        (0x101, CompressionType.LZ4),
        (0x201, CompressionType.ZSTD),
        (0x301, CompressionType.ZLIB),
    ],
)
def test_the_type_stands_in_the_flag(sys_flag: int, kind: CompressionType) -> None:
    assert compression_type(sys_flag) is kind


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(CompressionError, match="type 5"):
        plain_body(b"abc", 0x501)


def test_a_plain_body_is_left_alone() -> None:
    assert plain_body(memoryview(b"abc"), 0x300) == b"abc"
    assert plain_body(b"", 0x301) == b""
    assert plain_body(compress(b"abc"), 0x1) == b"abc"
