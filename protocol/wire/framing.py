"""Frames of the remoting protocol, declared once and cut out of any split of a byte stream.

    offset size name
    0      4    length          of all that follows
    4      4    mark            serialize_type (0 JSON, 1 ROCKETMQ) in the first byte, header_length in the other three
    8      ..   header
    ..     ..   body            the rest

Example: a route query without fields, `{"code":105}`, is 00000010 00 00000c 7b22636f6465223a3130357d.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias, TypeGuard, cast

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
from twisted_mq.protocol.wire.shapes import (
    MAX_BODY_BYTES,
    MAX_STREAK,
    MIN_STREAK,
    NO_SHAPES,
    Columns,
    Family,
    Row,
    Shape,
    Shapes,
    ShapesOfPeer,
    Streak,
    cutter,
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

HEAD = derive_struct(FRAME, "length", "mark")
_LENGTH = derive_fields(FRAME, "length")
LENGTH_BYTES, HEAD_BYTES = _LENGTH.size, HEAD.size
_unpack_head = HEAD.unpack_from

_DECODERS = {int(SerializeType.JSON): decode_json_command, int(SerializeType.ROCKETMQ): decode_binary_command}
_ENCODERS = {int(SerializeType.JSON): encode_json_header, int(SerializeType.ROCKETMQ): encode_binary_header}


def frame(serialize_type: int, header: bytes, body: bytes) -> bytes:
    """Make a frame around an encoded header; equal to FRAME.build."""
    return frame_start(serialize_type, header, len(body)) + body


def frame_start(serialize_type: int, header: bytes, body_bytes: int) -> bytes:
    """Return a frame up to its body, of which only the length is needed."""
    size = len(header)
    return HEAD.pack(4 + size + body_bytes, serialize_type << 24 | size) + header


def with_body(whole: bytes, body: bytes) -> bytes:
    """Return the frame with another body; its header stays byte for byte."""
    _, mark = _unpack_head(whole)
    return frame(mark >> 24, whole[HEAD_BYTES : HEAD_BYTES + (mark & 0xFFFFFF)], body)


def frame_bytes(start: bytes, offset: int) -> int:
    """Return the size of the frame that begins with these bytes, `LENGTH_BYTES` at least, at this offset of its stream.

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
    """Return the command as one frame in its own header encoding."""
    return frame(command.serialize_type, _ENCODERS[command.serialize_type](command), command.body)


def decode_frame(whole: bytes) -> RemotingCommand:
    """Return the command of one whole frame that was encoded here. Raises FrameError, CommandError."""
    _, mark = _unpack_head(whole, 0)
    body_at = HEAD_BYTES + (mark & 0xFFFFFF)
    decode = _DECODERS.get(mark >> 24)
    if decode is None or frame_bytes(whole, 0) != len(whole) or body_at > len(whole):
        raise FrameError(f"{len(whole)} bytes are not one frame", 0)
    return decode(whole[HEAD_BYTES:body_at], whole[body_at:])


JSON_CODE, BINARY_CODE = slice(HEAD_BYTES, HEAD_BYTES + 13), slice(HEAD_BYTES, HEAD_BYTES + 2)
"""The place of the code in frames that are made here, by the form of their header: {"code":19, or two bytes."""


def code_of_start(start: bytes) -> int:
    """Return the code from the bytes that a frame has at JSON_CODE or BINARY_CODE."""
    return int(start.partition(b":")[2].partition(b",")[0]) if len(start) > 2 else int.from_bytes(start, "big")


Received: TypeAlias = RemotingCommand | Streak
"""A command, or several requests that have shapes."""


Cut: TypeAlias = tuple[list[Row], Columns | None, int]
"""Frames of a shape, their columns if they are alike, and their bytes."""


def _cut_alike(shape: Shape, data: bytes, position: int, size: int, body: int, most: int) -> Cut:
    """Return the frames of a shape from `position` on, `most` at most.

    The first one has `size` bytes, and its body begins at `body`. The second one and others begin like it, with the same lengths.
    """
    head, count = data[position : position + HEAD_BYTES], min((len(data) - position) // size, most, shape.run)
    if not data.startswith(head, position + size * (count - 1)):
        count = next(one for one in range(2, count) if not data.startswith(head, position + size * one))
    cut = cutter(shape.lengths, HEAD_BYTES, size - body)
    rows = [*cut.iter_unpack(memoryview(data)[position : position + size * count])]
    columns: Columns = [*zip(*rows)]  # noqa: B905
    fixed = (head + shape.fixed[0], *shape.fixed[1:])
    texts = zip(columns[::2], fixed, strict=True)
    if [column.count(text) for column, text in texts] == [count] * len(fixed):
        shape.run = min(2 * shape.run, MAX_STREAK)
        return rows, columns, size * count
    rows = [*itertools.takewhile(lambda row: row[::2] == fixed, rows)]
    shape.run = max(len(rows), 1)
    return rows, None, size * len(rows)


def _cut_ragged(shape: Shape, data: bytes, position: int, mark: int, size: int, most: int, longest: int) -> Cut:
    """Return the frames of a shape from `position` on, `most` at most, whatever the lengths of their bodies.

    The first one has `size` bytes. A frame whose length is above `longest` ends them.
    """
    body, end, place, rows = HEAD_BYTES + (mark & 0xFFFFFF), len(data), position, list[Row]()
    unpack, first, others = cutter(shape.lengths, HEAD_BYTES).unpack_from, shape.fixed[0], shape.fixed[1:]
    behind = position + size
    while len(rows) < most:
        row = (*unpack(data, place), data[place + body : behind])
        if row[2::2] != others or not row[0].endswith(first):
            break
        rows.append(row)
        place = behind
        if end - place < HEAD_BYTES:
            break
        length, same = _unpack_head(data, place)
        behind = place + LENGTH_BYTES + length
        if same != mark or length > longest or behind > end or not 0 <= behind - place - body <= MAX_BODY_BYTES:
            break
    return rows, None, place - position


Open: TypeAlias = list[Streak | None]
"""The streaks that the next frames may be part of, of ordered requests and of unordered ones: see Varying."""
_NONE_OPEN = (None, None)


def _cut_shapes(
    shapes: list[Shape],
    streaks: Sequence[Streak | None],
    data: bytes,
    position: int,
    head: tuple[int, int],
    longest: int,
) -> tuple[Family, Cut] | None:
    """Return the frames from `position` on that one of these shapes fits, and its family; None if none does.

    The shape that fits comes first from then on.
    """
    length, mark = head
    size, body = LENGTH_BYTES + length, HEAD_BYTES + (mark & 0xFFFFFF)
    alike = data.startswith(data[position : position + HEAD_BYTES], position + size)
    for place, shape in enumerate(shapes):
        most, streak = MAX_STREAK, streaks[shape.family.is_unordered]
        if streak is not None and streak.family is shape.family:
            most = MAX_STREAK - len(streak) or MAX_STREAK
        if alike:
            cut = _cut_alike(shape, data, position, size, body, most)
        else:
            cut = _cut_ragged(shape, data, position, mark, size, most, longest)
        if cut[0]:
            if place:
                shapes.insert(0, shapes.pop(place))
            return shape.family, cut
    return None


def _is_short(one: Received) -> TypeGuard[Streak]:
    return isinstance(one, Streak) and len(one) < MIN_STREAK


def _expand_short(received: list[Received]) -> None:
    """Replace the streaks that are too short by their commands. Raises CommandError; then those before it are left."""
    if not any(map(_is_short, received)):
        return
    every = received.copy()
    received.clear()
    for one in every:
        if _is_short(one):
            received.extend(map(one.plain, range(len(one))))
        else:
            received.append(one)


class FrameDecoder:
    """Cuts a stream into commands. Keeps at most one incomplete frame; never holds more than `max_frame_bytes` of it.

    With `shapes`, requests that have one come in streaks.
    """

    __slots__ = ("_failed", "_has_streaks", "_held", "_learns", "_max", "_needed", "_offset", "_shapes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES, shapes: Shapes = NO_SHAPES) -> None:
        self._max = max_frame_bytes
        self._shapes = ShapesOfPeer(shapes)
        self._learns = shapes.by_code
        # one growing array, not a list of pieces: a peer may send a byte at a time
        self._held = bytearray()
        self._needed = LENGTH_BYTES
        self._offset = 0
        self._failed = self._has_streaks = False

    @property
    def incomplete_bytes(self) -> int:
        """Return how many bytes of an unfinished frame are held."""
        return len(self._held)

    def receive_data(self, data: bytes) -> list[RemotingCommand]:
        """Return all commands that are complete with `data`, in order. For a decoder without shapes.

        Raises FrameTooLarge or FrameError; the commands before the damaged frame are in its `commands`
        attribute, and the decoder takes no more data after it.
        """
        return cast(list[RemotingCommand], self.receive(data))

    def receive(self, data: bytes) -> list[Received]:
        """Do the same for a decoder with shapes."""
        if self._held:
            if len(self._held) + len(data) < self._needed:
                self._held += data
                return []
            data = b"".join((self._held, data))
            self._held.clear()
        commands: list[Received] = []
        try:
            try:
                consumed = self._cut(data, commands)
            finally:
                if self._has_streaks:
                    self._has_streaks = False
                    _expand_short(commands)  # what is damaged there comes before what ends the cutting
        except FrameError as error:
            self._failed = True
            error.commands = commands
            raise
        except CommandError as error:
            self._failed = True
            damage = FrameError(str(error), self._offset)
            damage.commands = commands
            raise damage from error
        self._offset += consumed
        if consumed < len(data):
            self._held += data[consumed:]
        return commands

    def _cut(self, data: bytes, commands: list[Received]) -> int:
        """Append every complete command of `data`; return how many bytes they took. Sets the bytes needed next."""
        if self._failed:
            raise FrameError("data after a damaged frame", self._offset)
        position, end, longest = 0, len(data), self._max - LENGTH_BYTES
        shapes_of, learns = self._shapes.get, self._learns
        streaks: Open | None = None
        while end - position >= HEAD_BYTES:
            length, mark = _unpack_head(data, position)
            frame_end = position + LENGTH_BYTES + length
            if frame_end > end or not LENGTH_BYTES <= length <= longest:
                break
            body_at = position + HEAD_BYTES + (mark & 0xFFFFFF)
            if body_at > frame_end:
                raise FrameError(f"a header of {mark & 0xFFFFFF} bytes in a frame of {length}", self._offset + position)
            shapes = shapes_of(mark)
            is_strange = not shapes
            if shapes and (streaks is not None or end - frame_end > (MIN_STREAK - 2) * length):
                if frame_end - body_at <= MAX_BODY_BYTES:
                    found = _cut_shapes(shapes, streaks or _NONE_OPEN, data, position, (length, mark), longest)
                    if found is not None:
                        family, (rows, alike, size) = found
                        if streaks is None:
                            streaks, self._has_streaks = [None, None], True
                        streak = streaks[family.is_unordered]
                        if streak is None or streak.family is not family or len(streak) == MAX_STREAK:
                            streak = streaks[family.is_unordered] = Streak(family, HEAD_BYTES)
                            commands.append(streak)
                        streak.add(rows, alike)
                        position += size
                        continue
                is_strange = True
            streaks = None
            try:
                decode = _DECODERS[mark >> 24]
            except KeyError:
                reason = f"serialize type {mark >> 24}, known are 0 and 1"
                raise FrameError(reason, self._offset + position) from None
            header = data[position + HEAD_BYTES : body_at]
            try:
                command = decode(header, data[body_at:frame_end])
            except CommandError as error:
                raise FrameError(str(error), self._offset + position) from error
            if is_strange and command.code in learns:
                self._shapes.learn(mark, header, command)
            commands.append(command)
            position = frame_end
        if position < end:
            self._needed = self._bytes_needed(data, position)
        return position

    def _bytes_needed(self, data: bytes, position: int) -> int:
        """Return how many bytes the unfinished frame at `position` has, as far as that is known."""
        if len(data) - position < LENGTH_BYTES:
            return LENGTH_BYTES
        (length,) = _LENGTH.unpack_from(data, position)
        return _frame_bytes(length, self._max, self._offset + position)
