"""gRPC's messages on a stream: bytes in, messages out."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from twisted_mq.protocol.layouts.grpc_frame import GRPC_HEAD
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus

IDENTITY, GZIP = "identity", "gzip"
ENCODINGS = (IDENTITY, GZIP)
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


COMPRESSED_FROM = 1024
"""The least size in bytes of a message that is compressed."""


def frame(message: bytes, encoding: str = IDENTITY) -> bytes:
    """Return a message as it goes on the stream. Short messages are not compressed, whatever the encoding is."""
    if encoding == GZIP and len(message) >= COMPRESSED_FROM:
        compressor = zlib.compressobj(1, wbits=_GZIP_WINDOW)
        compressed = compressor.compress(message) + compressor.flush()
        return GRPC_HEAD.pack(1, len(compressed)) + compressed
    return GRPC_HEAD.pack(0, len(message)) + message


class MessageDecoder:
    """Cuts a stream's bytes into messages of at most `most_bytes`, and `most_inflated` after decompression."""

    def __init__(self, most_bytes: int, encoding: str = IDENTITY, most_inflated: int | None = None) -> None:
        self._most_bytes = most_bytes
        self._most_inflated = most_bytes if most_inflated is None else min(most_bytes, most_inflated)
        self._encoding = encoding
        self._buffer = bytearray()

    @property
    def incomplete_bytes(self) -> int:
        """Return the bytes of an unfinished message that are held."""
        return len(self._buffer)

    def receive_data(self, data: bytes) -> Iterator[bytes]:
        """Yield the messages that are complete now. Raises GrpcError; a length is checked before its bytes are kept."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= GRPC_HEAD.size:
            compressed, length = GRPC_HEAD.unpack_from(buffer)
            if compressed > 1:
                raise GrpcError(GrpcStatus.INTERNAL, f"compressed flag is {compressed}, it must be 0 or 1")
            if length > self._most_bytes:
                raise self._too_large(length, self._most_bytes)
            end = GRPC_HEAD.size + length
            if len(buffer) < end:
                return
            message = bytes(memoryview(buffer)[GRPC_HEAD.size : end])
            del buffer[:end]
            yield self._decompressed(message) if compressed else message

    def _decompressed(self, message: bytes) -> bytes:
        if self._encoding != GZIP:
            raise GrpcError(GrpcStatus.INTERNAL, "message is compressed, but grpc-encoding names no compression")
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        try:
            inflated = inflater.decompress(message, self._most_inflated + 1)
        except zlib.error as error:
            raise GrpcError(GrpcStatus.INTERNAL, f"message cannot be decompressed: {error}") from None
        if len(inflated) > self._most_inflated:
            raise self._too_large(len(inflated), self._most_inflated)
        if not inflater.eof:
            raise GrpcError(GrpcStatus.INTERNAL, "message cannot be decompressed: its end is missing")
        return inflated

    @staticmethod
    def _too_large(length: int, most: int) -> GrpcError:
        return GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, f"message of {length} bytes is larger than the limit of {most}")
