"""Frames of the remoting protocol, declared once and cut out of any split of a byte stream.

    offset size name
    0      4    length          of all that follows
    4      1    serialize_type  0 JSON, 1 ROCKETMQ
    5      3    header_length
    8      ..   header
    ..     ..   body            the rest

Example: a route query without fields, `{"code":105}`, is 00000010 00 00000c 7b22636f6465223a3130357d.
"""

from __future__ import annotations

import construct
import msgspec

from twisted_mq.protocol.errors import FrameError, FrameTooLarge
from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.protocol.wire.command import (
    CommandError,
    RemotingCommand,
    SerializeType,
    _decode_json_header,
    decode_binary_command,
    decode_json_command,
    encode_binary_header,
    encode_json_header,
)

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Length field and frame together (Apache: NettyDecoder, com.rocketmq.remoting.frameMaxLength)."""

FRAME = construct.Struct(
    "length" / construct.Rebuild(construct.Int32ub, lambda this: 4 + len(this.header) + len(this.body)),
    "serialize_type" / construct.Int8ub,
    "header_length" / construct.Rebuild(construct.Int24ub, lambda this: len(this.header)),
    "header" / construct.Bytes(construct.this.header_length),
    "body" / construct.Bytes(construct.this.length - 4 - construct.this.header_length),
)

_HEAD = derive_struct(construct.Struct("length" / construct.Int32ub, "mark" / construct.Int32ub))
"""A frame's first 8 bytes; the mark is serialize_type and header_length."""

_DECODERS = {SerializeType.JSON: decode_json_command, SerializeType.ROCKETMQ: decode_binary_command}
_ENCODERS = {SerializeType.JSON: encode_json_header, SerializeType.ROCKETMQ: encode_binary_header}


def frame(serialize_type: int, header: bytes, body: bytes) -> bytes:
    """One frame around an encoded header; equal to FRAME.build."""
    header_size = len(header)
    mark = serialize_type << 24 | header_size
    return b"".join(((4 + header_size + len(body)).to_bytes(4, "big"), mark.to_bytes(4, "big"), header, body))


def encode_frame(command: RemotingCommand) -> bytes:
    """The command as one frame in its own header encoding."""
    return frame(command.serialize_type, _ENCODERS[SerializeType(command.serialize_type)](command), command.body)


class FrameDecoder:
    """Cuts a stream into commands. Keeps at most one incomplete frame; never holds more than `max_frame_bytes` of it."""

    __slots__ = ("_failed", "_held", "_max", "_needed", "_offset")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max = max_frame_bytes
        # one growing array, not a list of pieces: a peer may send a byte at a time
        self._held = bytearray()
        self._needed = 4
        self._offset = 0
        self._failed = False

    @property
    def incomplete_bytes(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._held)

    def receive_data(self, data: bytes) -> list[RemotingCommand]:
        """All commands that are complete with `data`, in order.

        Raises FrameTooLarge or FrameError; the commands before the damaged frame are in its `commands`
        attribute, and the decoder takes no more data after it.
        """
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        commands: list[RemotingCommand] = []
        try:
            consumed = self._cut(data, commands)
        except FrameError as error:
            self._failed = True
            error.commands = commands
            raise
        self._offset += consumed
        if consumed < len(data):
            self._held += data[consumed:]
        return commands

    def _cut(self, data: bytes, commands: list[RemotingCommand]) -> int:
        """Append every complete command of `data`; return how many bytes they took. Sets the bytes needed next."""
        if self._failed:
            raise FrameError("data after a damaged frame", self._offset)
        position, end = 0, len(data)
        while True:
            if end - position < _HEAD.size:
                return self._cut_head(data, position)
            length, mark = _HEAD.unpack_from(data, position)
            frame_end = position + 4 + length
            if length + 4 > self._max or length < 4 or frame_end > end:
                return self._cut_head(data, position)
            body_at = position + 8 + (mark & 0xFFFFFF)
            if body_at > frame_end:
                raise FrameError(f"a header of {mark & 0xFFFFFF} bytes in a frame of {length}", self._offset + position)
            commands.append(self._command(mark >> 24, data[position + 8 : body_at], data[body_at:frame_end], position))
            position = frame_end

    def _cut_head(self, data: bytes, position: int) -> int:
        """Set the bytes needed for the frame that begins at `position`, and is not there whole."""
        self._needed = 4
        if len(data) - position >= 4:
            length = int.from_bytes(data[position : position + 4], "big")
            if length + 4 > self._max:
                raise FrameTooLarge(f"a frame of {length + 4} bytes, the limit is {self._max}", self._offset + position)
            if length < 4:
                raise FrameError(f"a frame length of {length}, at least 4 is needed", self._offset + position)
            self._needed = 4 + length
        return position

    def _command(self, serialize_type: int, header: bytes, body: bytes, position: int) -> RemotingCommand:
        if serialize_type == 0:  # the common case, in line: no further call
            try:
                read = _decode_json_header(header)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise FrameError(f"JSON header: {error}", self._offset + position) from error
            if type(read.language) is str:
                return RemotingCommand(
                    read.code,
                    read.opaque,
                    read.flag,
                    read.language,
                    read.version,
                    read.remark,
                    body,
                    0,
                    read.extFields,
                    read.serializeTypeCurrentRPC is not None,
                )
        decode = _DECODERS.get(serialize_type)  # type: ignore[call-overload]
        if decode is None:
            raise FrameError(f"serialize type {serialize_type}, known are 0 and 1", self._offset + position)
        try:
            command: RemotingCommand = decode(header, body)
        except CommandError as error:
            raise FrameError(str(error), self._offset + position) from error
        return command
