"""gRPC's status codes, and the headers that carry them (gRPC over HTTP/2, "Responses")."""

from __future__ import annotations

import enum
from urllib.parse import quote

MOST_CHARACTERS = 1000
"""Longer messages are cut: peers bound the size of trailers."""
PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

Headers = list[tuple[str, str]]


class GrpcStatus(enum.IntEnum):
    """The transport's status of an ended call; RocketMQ's own status is inside its answers."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class GrpcError(Exception):
    """Ends a call with a status that is not OK. Handlers may raise it."""

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(f"{status.name}: {message}")
        self.status = status
        self.message = message


def status_headers(status: GrpcStatus, message: str = "") -> Headers:
    """Return the trailers that end a call; the message is percent-encoded UTF-8."""
    headers = [("grpc-status", str(int(status)))]
    if message:
        headers.append(("grpc-message", quote(message[:MOST_CHARACTERS], safe=PRINTABLE)))
    return headers
