"""Errors of the protocol layer: what was wrong with bytes that came in, and which answer a peer gets.

A `FrameError` means the stream can no longer be followed: the connection is closed. Every other error concerns one
command or one record and is answered or reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class RocketMQError(Exception):
    """Root of what protocol, remoting and client raise on purpose."""


class ProtocolError(RocketMQError):
    """Root of all errors that `protocol` raises on purpose."""


class FrameError(ProtocolError):
    """A byte stream that cannot be cut into frames; `offset` counts from the first byte of the stream.

    `commands` are the RemotingCommands that were complete before the damage, in the same data.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (frame at stream offset {offset})")
        self.reason = reason
        self.offset = offset
        self.commands: list[Any] = []  # of RemotingCommand, which is built on these errors


class FrameTooLarge(FrameError):
    """A frame announces more bytes than the limit; raised before any memory is taken for it."""


class CommandError(ProtocolError):
    """A header that is framed correctly but cannot be read."""


class HeaderError(ProtocolError):
    """A command header misses a required field, or has a value of the wrong type or range."""

    def __init__(self, header: str, field: str, value: Any, reason: str) -> None:
        super().__init__(f"{header}.{field}: {reason}, got {value!r}")
        self.header = header
        self.field = field
        self.value = value
        self.reason = reason


class BodyError(ProtocolError):
    """A command body that is not what its code demands."""

    def __init__(self, body: str, reason: str) -> None:
        super().__init__(f"{body}: {reason}")
        self.body = body
        self.reason = reason


class RecordError(ProtocolError):
    """A stored record that cannot be read; `offset` is its physical offset, or its position in the bytes given."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (at offset {offset})")
        self.reason = reason
        self.offset = offset


class BrokerError(ProtocolError):
    """A request that is refused: the answer carries this response code, remark and fields (Apache: MQBrokerException)."""

    def __init__(self, response_code: int, remark: str, ext_fields: Mapping[str, str] = NO_FIELDS) -> None:
        super().__init__(f"CODE: {int(response_code)} DESC: {remark}")
        self.response_code = response_code
        self.remark = remark
        self.ext_fields = ext_fields

    def with_fields(self, ext_fields: Mapping[str, str]) -> BrokerError:
        """Return the same refusal, with these fields in its answer."""
        return BrokerError(self.response_code, self.remark, ext_fields)
