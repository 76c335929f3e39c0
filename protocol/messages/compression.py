"""Compressed message bodies: LZ4 frames, ZSTD frames, ZLIB streams; which one is in the message's sysFlag.

Every decompression is bounded: a body that grows past the limit is refused after at most the limit's bytes. LZ4 and ZSTD are
loaded with the first body of their kind: most processes, as workers of Spark, never see one. Each is an extra.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.flags import MessageSysFlag, is_compressed

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Default limit of a decompressed body; Apache has none, its brokers take 4 MiB of stored body by default."""

DEFAULT_LEVEL = 5
"""Apache: DefaultMQProducer's rocketmq.message.compressLevel."""

_FIRST_PIECE_BYTES = 64 * 1024
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
"""The least window to accept: even a short ZSTD stream of Apache's writer announces some MiB."""
_ZSTD_PIECE_BYTES = 256
"""The number of bytes fed at once: 4 bytes can become a block of 128 KiB, so the limit is passed by at most 8 MiB."""


class CompressionError(ProtocolError):
    """A body that cannot be decompressed, or would grow past the limit."""


class CompressorMissing(ProtocolError):
    """The library of a compression is not installed: no body of that kind can be written or read here."""

    def __init__(self, name: str, library: str) -> None:
        super().__init__(f'{name} needs {library}: pip install "rocketmq-twisted[{name.lower()}]"')


class CompressionType(enum.IntEnum):
    """The number in bits 8 to 10 of sysFlag (Apache: CompressionType)."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3

    @property
    def sys_flag(self) -> int:
        """Return the type's bits in sysFlag, without COMPRESSED_FLAG."""
        return self << 8


def compression_type(sys_flag: int) -> CompressionType:
    """Return the type of a compressed message; without type bits it is ZLIB, as from clients before 5.0."""
    number = (sys_flag & MessageSysFlag.COMPRESSION_TYPE_COMPARATOR) >> 8
    if number > CompressionType.ZLIB:
        raise CompressionError(f"compression type {number}, known are 1 (LZ4), 2 (ZSTD) and 3 (ZLIB)")
    return CompressionType(number or CompressionType.ZLIB)


def _lz4() -> Any:
    try:
        import lz4.frame
    except ModuleNotFoundError:
        raise CompressorMissing("LZ4", "lz4") from None
    return lz4.frame


def _zstandard() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise CompressorMissing("ZSTD", "zstandard") from None
    return zstandard


def _compress_lz4(body: bytes, level: int) -> bytes:
    return bytes(_lz4().compress(body))  # Apache's LZ4 writer has no level


def _compress_zstd(body: bytes, level: int) -> bytes:
    return bytes(_zstandard().ZstdCompressor(level=level).compress(body))


_CHECK: dict[CompressionType, Callable[[], object]] = {
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstandard,
    CompressionType.ZLIB: lambda: zlib,
}

_COMPRESS: dict[CompressionType, Callable[[bytes, int], bytes]] = {
    CompressionType.LZ4: _compress_lz4,
    CompressionType.ZSTD: _compress_zstd,
    CompressionType.ZLIB: zlib.compress,
}


def check_compressor(kind: CompressionType) -> None:
    """Raise CompressorMissing where bodies of that kind could not be written."""
    _CHECK[kind]()


def compress(body: bytes, kind: CompressionType = CompressionType.ZLIB, level: int = DEFAULT_LEVEL) -> bytes:
    """Return the body as Apache's compressor of that type writes it (the bytes may differ, the content does not).

    Raises CompressorMissing.
    """
    return _COMPRESS[kind](body, level)


def _decompress_zlib(data: bytes | memoryview, limit: int) -> bytes:
    stream = zlib.decompressobj()
    body = stream.decompress(data, limit + 1)
    if len(body) <= limit and not stream.eof:
        body += stream.flush()
        if not stream.eof:
            raise CompressionError("the ZLIB stream ends early")
    return body


def _decompress_lz4(data: bytes | memoryview, limit: int) -> bytes:
    stream = _lz4().LZ4FrameDecompressor()
    pieces: list[bytes] = []
    held, wanted = 0, max(_FIRST_PIECE_BYTES, 4 * len(data))
    while held <= limit and not stream.eof:
        piece = stream.decompress(data, max_length=min(wanted, limit + 1 - held))
        if not piece and stream.needs_input and not stream.eof:
            raise CompressionError("the LZ4 frame ends early")
        pieces.append(piece)
        held += len(piece)
        data, wanted = b"", 2 * wanted
    return b"".join(pieces)


def _decompress_zstd(data: bytes | memoryview, limit: int) -> bytes:
    zstandard = _zstandard()
    try:
        if zstandard.frame_content_size(data) > limit:
            raise CompressionError(f"a ZSTD frame announces more than the limit of {limit} bytes")
        stream = zstandard.ZstdDecompressor(max_window_size=max(limit, _ZSTD_WINDOW_BYTES)).decompressobj()
        return _in_pieces(stream, data, limit)
    except zstandard.ZstdError as error:
        raise CompressionError(f"ZSTD: {error}") from error


def _in_pieces(stream: ZstdDecompressionObj, data: bytes | memoryview, limit: int) -> bytes:
    pieces: list[bytes] = []
    held, position = 0, 0
    while held <= limit and not stream.eof:
        if position >= len(data):
            raise CompressionError("the ZSTD frame ends early")
        pieces.append(stream.decompress(data[position : position + _ZSTD_PIECE_BYTES]))
        held += len(pieces[-1])
        position += _ZSTD_PIECE_BYTES
    return b"".join(pieces)


_DECOMPRESS: dict[CompressionType, Callable[[bytes | memoryview, int], bytes]] = {
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
    CompressionType.ZLIB: _decompress_zlib,
}


def decompress(data: bytes | memoryview, kind: CompressionType, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the plain body. Raises CompressionError for damaged data and past `limit` bytes, CompressorMissing."""
    try:
        body = _DECOMPRESS[kind](data, limit)
    except (zlib.error, RuntimeError, EOFError) as error:
        raise CompressionError(f"{kind.name}: {error}") from error
    if len(body) > limit:
        raise CompressionError(f"{kind.name}: the body grows past the limit of {limit} bytes")
    return body


def plain_body(body: bytes | memoryview, sys_flag: int, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return a stored body as its producer gave it: decompressed if sysFlag says so. Raises CompressionError."""
    if is_compressed(sys_flag) and len(body):
        return decompress(body, compression_type(sys_flag), limit)
    return bytes(body)
