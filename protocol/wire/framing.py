"""Frames of the remoting protocol, declared once and cut out of any split of a byte stream.

    offset size name
    0      4    length          of all that follows
    4      4    mark            serialize_type (0 JSON, 1 ROCKETMQ) in the first byte, header_length in the other three
    8      ..   header
    ..     ..   body            the rest

Example: a route query without fields, `{"code":105}`, is 00000010 00 00000c 7b22636f6465223a3130357d.
"""

from __future__ import annotations

import construct

from twisted_mq.protocol.errors import CommandError, FrameError, FrameTooLarge
from twisted_mq.protocol.layouts.derive import derive_fields, derive_struct
from twisted_mq.protocol.wire.command import (
    RemotingCommand,
    SerializeType,
    decode_binary_command,
    decode_json_command,
    encode_binary_header,
    encode_json_header,
)

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Length field and frame together (Apache: NettyDecoder, com.rocketmq.remoting.frameMaxLength)."""

FRAME = construct.Struct(
    "length" / construct.Rebuild(construct.Int32ub, lambda this: 4 + len(this.header) + len(this.body)),
    "mark" / construct.Rebuild(construct.Int32ub, lambda this: this.serialize_type << 24 | len(this.header)),
    "header" / construct.Bytes(construct.this.mark & 0xFFFFFF),
    "body" / construct.Bytes(lambda this: this.length - 4 - len(this.header)),
    "serialize_type" / construct.Computed(construct.this.mark >> 24),
)

HEAD = derive_struct(FRAME)
_LENGTH = derive_fields(FRAME, "length")
LENGTH_BYTES, HEAD_BYTES = _LENGTH.size, HEAD.size
_unpack_head = HEAD.unpack_from

_DECODERS = {int(SerializeType.JSON): decode_json_command, int(SerializeType.ROCKETMQ): decode_binary_command}
_ENCODERS = {int(SerializeType.JSON): encode_json_header, int(SerializeType.ROCKETMQ): encode_binary_header}


def frame(serialize_type: int, header: bytes, body: bytes) -> bytes:
    """One frame around an encoded header; equal to FRAME.build."""
    return frame_start(serialize_type, header, len(body)) + body


def frame_start(serialize_type: int, header: bytes, body_bytes: int) -> bytes:
    """A frame up to its body, of which the length is enough."""
    size = len(header)
    return HEAD.pack(4 + size + body_bytes, serialize_type << 24 | size) + header


def with_body(whole: bytes, body: bytes) -> bytes:
    """The frame with another body; its header stays byte for byte."""
    _, mark = _unpack_head(whole)
    return frame(mark >> 24, whole[HEAD_BYTES : HEAD_BYTES + (mark & 0xFFFFFF)], body)


def frame_bytes(start: bytes, offset: int) -> int:
    """The size of the frame that begins with these bytes, `LENGTH_BYTES` at least, at this offset of its stream.

    Raises FrameTooLarge past MAX_FRAME_BYTES, FrameError.
    """
    return _frame_bytes(_LENGTH.unpack_from(start)[0], MAX_FRAME_BYTES, offset)


def _frame_bytes(length: int, most: int, offset: int) -> int:
    if LENGTH_BYTES + length > most:
        raise FrameTooLarge(f"a frame of {LENGTH_BYTES + length} bytes, the limit is {most}", offset)
    if length < LENGTH_BYTES:
        raise FrameError(f"a frame length of {length}, at least 4 is needed", offset)
    return LENGTH_BYTES + length


def encode_frame(command: RemotingCommand) -> bytes:
    """The command as one frame in its own header encoding."""
    return frame(command.serialize_type, _ENCODERS[command.serialize_type](command), command.body)


JSON_CODE, BINARY_CODE = slice(HEAD_BYTES, HEAD_BYTES + 13), slice(HEAD_BYTES, HEAD_BYTES + 2)
"""Where frames that are made here say their code, by the form of their header: {"code":19, or two bytes."""


def code_of_start(start: bytes) -> int:
    """The code in what a frame has at JSON_CODE or BINARY_CODE."""
    return int(start.partition(b":")[2].partition(b",")[0]) if len(start) > 2 else int.from_bytes(start, "big")


class FrameDecoder:
    """Cuts a stream into commands. Keeps at most one incomplete frame; never holds more than `max_frame_bytes` of it."""

    __slots__ = ("_failed", "_held", "_max", "_needed", "_offset")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max = max_frame_bytes
        # one growing array, not a list of pieces: a peer may send a byte at a time
        self._held = bytearray()
        self._needed = LENGTH_BYTES
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
        position, end, longest = 0, len(data), self._max - LENGTH_BYTES
        while end - position >= HEAD_BYTES:
            length, mark = _unpack_head(data, position)
            frame_end = position + LENGTH_BYTES + length
            if frame_end > end or not LENGTH_BYTES <= length <= longest:
                break
            body_at = position + HEAD_BYTES + (mark & 0xFFFFFF)
            if body_at > frame_end:
                raise FrameError(f"a header of {mark & 0xFFFFFF} bytes in a frame of {length}", self._offset + position)
            try:
                decode = _DECODERS[mark >> 24]
            except KeyError:
                reason = f"serialize type {mark >> 24}, known are 0 and 1"
                raise FrameError(reason, self._offset + position) from None
            try:
                commands.append(decode(data[position + HEAD_BYTES : body_at], data[body_at:frame_end]))
            except CommandError as error:
                raise FrameError(str(error), self._offset + position) from error
            position = frame_end
        if position < end:
            self._needed = self._bytes_needed(data, position)
        return position

    def _bytes_needed(self, data: bytes, position: int) -> int:
        """So many bytes has the frame that begins at `position` and is not there whole, as far as can be said."""
        if len(data) - position < LENGTH_BYTES:
            return LENGTH_BYTES
        (length,) = _LENGTH.unpack_from(data, position)
        return _frame_bytes(length, self._max, self._offset + position)
