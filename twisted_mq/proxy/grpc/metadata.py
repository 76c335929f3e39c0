"""Reads the headers that begin a call: method, deadline, encoding, metadata. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from twisted_mq.proxy.grpc.framing import ENCODINGS, GZIP, IDENTITY
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus, Headers

CONTENT_TYPE = "application/grpc"
_CONTENT_TYPE = CONTENT_TYPE.encode()
_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNIT_SECONDS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}

RESPONSE_HEADERS: Headers = [
    (":status", "200"),
    ("content-type", CONTENT_TYPE),
    ("grpc-accept-encoding", ",".join(ENCODINGS)),
]
"""The headers that begin every answer."""


class NotGrpc(Exception):
    """A request that is HTTP/2 but not gRPC; `status` is the HTTP status that refuses it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@attrs.frozen
class Metadata:
    """The metadata of a call: its headers by name in lower case. Of several values, the last counts."""

    _given: Mapping[bytes, bytes] = attrs.field(factory=dict)

    def get(self, name: str) -> str:
        """Return a value, or an empty text."""
        return self._given.get(name.encode(), b"").decode("utf-8", "replace")


@attrs.frozen
class CallHead:
    """The content of a call's headers."""

    path: str
    timeout_seconds: float | None
    encoding: str
    metadata: Metadata
    answer_encoding: str = IDENTITY
    """The encoding of the answers: gzip if the client compresses its requests so and accepts it, as servers of gRPC do."""

    @property
    def response_headers(self) -> Headers:
        """Return the headers that begin the answer."""
        if self.answer_encoding == IDENTITY:
            return RESPONSE_HEADERS
        return [*RESPONSE_HEADERS, ("grpc-encoding", self.answer_encoding)]


def is_plain(given: Mapping[bytes, bytes]) -> bool:
    """Return whether `read_head` takes these headers, and they name neither a compression nor a rare content type."""
    timeout = given.get(b"grpc-timeout")
    return (
        given.get(b":method") == b"POST"
        and given.get(b"content-type") == _CONTENT_TYPE
        and b"grpc-encoding" not in given
        and (timeout is None or _TIMEOUT.fullmatch(timeout) is not None)
    )


def read_head(given: Mapping[bytes, bytes]) -> CallHead:
    """Read a call's headers. Raises NotGrpc, or GrpcError for a gRPC call that cannot be served."""
    if given.get(b":method") != b"POST":
        raise NotGrpc(405)
    content_type = given.get(b"content-type", b"")
    if content_type != _CONTENT_TYPE and not content_type.startswith((_CONTENT_TYPE + b"+", _CONTENT_TYPE + b";")):
        raise NotGrpc(415)
    encoding = answers = IDENTITY
    if b"grpc-encoding" in given:
        encoding = given[b"grpc-encoding"].decode("utf-8", "replace")
        if encoding not in ENCODINGS:
            raise GrpcError(
                GrpcStatus.UNIMPLEMENTED, f"grpc-encoding {encoding} is not supported, use identity or gzip"
            )
        accepted = {one.strip() for one in given.get(b"grpc-accept-encoding", b"").split(b",")}
        answers = GZIP if encoding == GZIP and GZIP.encode() in accepted else IDENTITY
    path = given.get(b":path", b"").decode("utf-8", "replace")
    return CallHead(path, _timeout(given.get(b"grpc-timeout")), encoding, Metadata(given), answers)


def _timeout(text: bytes | None) -> float | None:
    if text is None:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise GrpcError(GrpcStatus.INTERNAL, f"grpc-timeout {text.decode('utf-8', 'replace')!r} is not a timeout")
    return int(match[1]) * _UNIT_SECONDS[match[2]]
