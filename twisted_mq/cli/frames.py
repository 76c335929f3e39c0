"""Implements `mq frames FILE`: one JSON object for each remoting frame."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import BinaryIO

import attrs
import click

from twisted_mq.cli.errors import report
from twisted_mq.cli.output import json_line
from twisted_mq.protocol.text.json_value import Json


@attrs.frozen
class DamagedBytes:
    """Bytes that are not a frame; `offset` is where the frame begins."""

    offset: int
    reason: str


@click.command(short_help="Print a recording of remoting frames as JSON.")
@click.argument("file", type=click.File("rb"))
def frames(file: BinaryIO) -> None:
    """Print one JSON object for each remoting frame in FILE ("-" reads standard input).

    FILE contains complete frames one after the other, as on a connection. If it is damaged, the offset and the
    reason go to standard error, readable frames are printed, and the exit code is 1.

    \b
    Example:
      mq frames interop/captures/remoting/producer_sync.frames
    """
    damaged = False
    for item in read_frames(file):
        if isinstance(item, DamagedBytes):
            report("mq frames", f"{file.name} at offset {item.offset}: {item.reason}")
            damaged = True
        else:
            sys.stdout.write(json_line(item))
    if damaged:
        raise SystemExit(1)


def read_frames(stream: BinaryIO) -> Iterator[dict[str, Json] | DamagedBytes]:
    """Yield every frame of a stream in order. A damaged header costs its own frame, a damaged length all that follows."""
    from twisted_mq.protocol.errors import FrameError
    from twisted_mq.protocol.wire.framing import LENGTH_BYTES, frame_bytes

    offset = 0
    while head := stream.read(LENGTH_BYTES):
        if len(head) < LENGTH_BYTES:
            yield DamagedBytes(offset, f"the length field is incomplete: {len(head)} of {LENGTH_BYTES} bytes")
            return
        try:
            size = frame_bytes(head, offset)
        except FrameError as error:
            yield DamagedBytes(offset, error.reason)
            return
        data = head + stream.read(size - LENGTH_BYTES)
        if len(data) < size:
            yield DamagedBytes(offset, f"the frame is incomplete: {len(data)} of {size} bytes")
            return
        yield describe_frame(data, offset)
        offset += size


def describe_frame(data: bytes, offset: int) -> dict[str, Json] | DamagedBytes:
    """Return a frame under the documented keys; `length` counts the whole frame with its length field."""
    from twisted_mq.protocol.errors import CommandError, FrameError
    from twisted_mq.protocol.wire.command import SerializeType
    from twisted_mq.protocol.wire.framing import FrameDecoder

    try:
        command = FrameDecoder().receive_data(data)[0]
        fields = command.ext_fields
    except FrameError as error:
        return DamagedBytes(offset, error.reason)
    except CommandError as error:
        return DamagedBytes(offset, str(error))
    return {
        "offset": offset,
        "length": len(data),
        "code": command.code,
        "flag": command.flag,
        "language": command.language,
        "version": command.version,
        "opaque": command.opaque,
        "serialize": SerializeType(command.serialize_type).name,
        "remark": command.remark,
        "extFields": fields,
        "bodyLength": len(command.body),
    }
