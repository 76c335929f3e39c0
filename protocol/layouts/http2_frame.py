"""The head of a frame of HTTP/2 (RFC 9113, 4.1).

offset  size  name
0       1     length_high   the first octet of the length of what follows, which has 24 bits
1       2     length_low
3       1     kind          0 DATA, 1 HEADERS
4       1     flags         0x1 END_STREAM, 0x4 END_HEADERS
5       4     stream_id
"""

from __future__ import annotations

import construct

from twisted_mq.protocol.layouts.derive import derive_struct

FRAME_HEAD = construct.Struct(
    "length_high" / construct.Int8ub,
    "length_low" / construct.Int16ub,
    "kind" / construct.Int8ub,
    "flags" / construct.Int8ub,
    "stream_id" / construct.Int32ub,
)
DATA, HEADERS = 0, 1
END_STREAM, END_HEADERS = 1, 4
_pack = derive_struct(FRAME_HEAD).pack


def frame_head(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    """Return the 9 bytes of a frame's head."""
    return _pack(length >> 16, length & 0xFFFF, kind, flags, stream_id)
