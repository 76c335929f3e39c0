"""Checks of received frames (RFC 9113, 6). Each raises Http2Error with the RFC's code."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.protocol.http2.errors import Http2Error
from twisted_mq.protocol.layouts.http2_frame import PADDED, PRIORITY_PART, STREAM_BITS, ErrorCode, Setting

FRAME_BYTES = 16_384
"""The limit of a received frame, and of a sent one until the client allows more (RFC 9113, 4.2)."""
MOST_WINDOW = 2**31 - 1
SETTING_RULES: Mapping[int, tuple[int, int, ErrorCode]] = {
    Setting.ENABLE_PUSH: (0, 1, ErrorCode.PROTOCOL_ERROR),
    Setting.INITIAL_WINDOW_SIZE: (0, MOST_WINDOW, ErrorCode.FLOW_CONTROL_ERROR),
    Setting.MAX_FRAME_SIZE: (FRAME_BYTES, (1 << 24) - 1, ErrorCode.PROTOCOL_ERROR),
    Setting.ENABLE_CONNECT_PROTOCOL: (0, 1, ErrorCode.PROTOCOL_ERROR),
}
"""The least and the greatest value of a setting, and the error otherwise."""


def unpadded(flags: int, content: bytes) -> bytes:
    """Return a frame's content without its padding. Raises Http2Error."""
    if not flags & PADDED:
        return content
    if not content:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "frame without the length of its padding")
    if content[0] >= len(content):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"padding of {content[0]} bytes in a frame of {len(content)}")
    return content[1 : len(content) - content[0]]


def check_priority(stream_id: int, content: bytes) -> None:
    """Raise Http2Error for a stream that depends on itself."""
    check_size("priority", content, PRIORITY_PART.size)
    depends_on, _ = PRIORITY_PART.unpack(content)
    if depends_on & STREAM_BITS == stream_id:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"stream {stream_id} depends on itself")


def check_size(kind: str, content: bytes, size: int) -> None:
    """Raise Http2Error for a frame whose content has another size."""
    if len(content) != size:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"{kind} of {len(content)} bytes, it has {size}")


def check_connection(kind: str, stream_id: int) -> None:
    """Raise Http2Error for a frame of the connection that names a stream."""
    if stream_id:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"{kind} on stream {stream_id}")


def check_setting(number: int, value: int) -> None:
    """Raise Http2Error for a setting that has no such value. Unknown settings have any."""
    low, high, code = SETTING_RULES.get(number, (value, value, ErrorCode.NO_ERROR))
    if not low <= value <= high:
        raise Http2Error(code, f"setting {Setting(number).name} is {value}")
