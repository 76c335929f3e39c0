"""Reads the headers that begin a call: method, deadline, encoding, metadata. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from twisted_mq.proxy.grpc.framing import ENCODINGS, GZIP, IDENTITY
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus, Headers

CONTENT_TYPE = "application/grpc"
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNIT_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_OF_THE_TRANSPORT = {"te", "content-type", "user-agent", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding"}

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
class CallHead:
    """The content of a call's headers. Names of metadata are in lower case. Of several values, the last counts."""

    path: str
    timeout_seconds: float | None
    encoding: str
    metadata: Mapping[str, str]
    answer_encoding: str = IDENTITY
    """The encoding of the answers: gzip if the client compresses its requests so and accepts it, as servers of gRPC do."""

    @property
    def response_headers(self) -> Headers:
        """Return the headers that begin the answer."""
        if self.answer_encoding == IDENTITY:
            return RESPONSE_HEADERS
        return [*RESPONSE_HEADERS, ("grpc-encoding", self.answer_encoding)]


def read_head(headers: Iterable[tuple[str, str]]) -> CallHead:
    """Read a call's headers. Raises NotGrpc, or GrpcError for a gRPC call that cannot be served."""
    given = dict(headers)
    if given.get(":method") != "POST":
        raise NotGrpc(405)
    content_type = given.get("content-type", "")
    if content_type != CONTENT_TYPE and not content_type.startswith((f"{CONTENT_TYPE}+", f"{CONTENT_TYPE};")):
        raise NotGrpc(415)
    encoding = given.get("grpc-encoding", IDENTITY)
    if encoding not in ENCODINGS:
        raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"grpc-encoding {encoding} is not supported, use identity or gzip")
    metadata = {name: value for name, value in given.items() if _is_metadata(name)}
    accepted = {one.strip() for one in given.get("grpc-accept-encoding", "").split(",")}
    answers = GZIP if encoding == GZIP and GZIP in accepted else IDENTITY
    return CallHead(given.get(":path", ""), _timeout(given.get("grpc-timeout")), encoding, metadata, answers)


def _is_metadata(name: str) -> bool:
    return not name.startswith(":") and name not in _OF_THE_TRANSPORT


def _timeout(text: str | None) -> float | None:
    if text is None:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise GrpcError(GrpcStatus.INTERNAL, f"grpc-timeout {text!r} is no timeout")
    return int(match[1]) * _UNIT_SECONDS[match[2]]
