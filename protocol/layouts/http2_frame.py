"""Frames of HTTP/2 (RFC 9113, 4 and 6). FRAME_HEAD begins each of them.

The content of DATA and HEADERS may begin with the length of its padding (flag 0x8). Fields of PRIORITY may
begin that of HEADERS (0x20).

offset  size  name
0       1     length_high   the first octet of the length of what follows, which has 24 bits
1       2     length_low
3       1     kind          0 DATA, 1 HEADERS
4       1     flags         0x1 END_STREAM, 0x4 END_HEADERS
5       4     stream_id

    PRIORITY                                 RST_STREAM
    0   4  depends_on                        0   4  error_code
    4   1  weight
                                             GOAWAY, before any bytes
    SETTINGS, any number of these            0   4  last_stream_id
    0   2  number                            4   4  error_code
    2   4  value
                                             WINDOW_UPDATE
    PING                                     0   4  increment
    0   8  content
"""

from __future__ import annotations

import enum

import construct

from twisted_mq.protocol.layouts.derive import derive_struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes that a client sends."""
STREAM_BITS = 0x7FFF_FFFF
"""The bits of a stream's number, of a window and of what is added to one: the first one is reserved."""

FRAME_HEAD = construct.Struct(
    "length_high" / construct.Int8ub,
    "length_low" / construct.Int16ub,
    "kind" / construct.Int8ub,
    "flags" / construct.Int8ub,
    "stream_id" / construct.Int32ub,
)
PRIORITY_FIELDS = construct.Struct("depends_on" / construct.Int32ub, "weight" / construct.Int8ub)
"""The first bit of `depends_on` says that the dependency is exclusive."""
RESET_FIELDS = construct.Struct("error_code" / construct.Int32ub)
SETTING_FIELDS = construct.Struct("number" / construct.Int16ub, "value" / construct.Int32ub)
"""A setting. A SETTINGS frame has any number of them."""
PING_FIELDS = construct.Struct("content" / construct.Bytes(8))
GOAWAY_FIELDS = construct.Struct("last_stream_id" / construct.Int32ub, "error_code" / construct.Int32ub)
"""Any bytes may follow."""
WINDOW_FIELDS = construct.Struct("increment" / construct.Int32ub)

HEAD = derive_struct(FRAME_HEAD)
PRIORITY_PART = derive_struct(PRIORITY_FIELDS)
RESET_PART = derive_struct(RESET_FIELDS)
SETTING_PART = derive_struct(SETTING_FIELDS)
PING_PART = derive_struct(PING_FIELDS)
GOAWAY_PART = derive_struct(GOAWAY_FIELDS)
WINDOW_PART = derive_struct(WINDOW_FIELDS)

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x4, 0x8, 0x20
ACK = 0x1
"""The flag of SETTINGS and PING that answer one."""


class ErrorCode(enum.IntEnum):
    """The reasons of RST_STREAM and GOAWAY (RFC 9113, 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(enum.IntEnum):
    """The numbers of settings (RFC 9113, 6.5.2; RFC 8441)."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6
    ENABLE_CONNECT_PROTOCOL = 8


_pack = HEAD.pack


def frame_head(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    """Return the 9 bytes of a frame's head."""
    return _pack(length >> 16, length & 0xFFFF, kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, content: bytes = b"") -> bytes:
    """Return a whole frame."""
    return frame_head(len(content), kind, flags, stream_id) + content
