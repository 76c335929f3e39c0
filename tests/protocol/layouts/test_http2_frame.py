"""Heads of HTTP/2 frames are those of hyperframe."""

from __future__ import annotations

import pytest
from hyperframe.frame import DataFrame, HeadersFrame

from twisted_mq.protocol.layouts.http2_frame import DATA, END_HEADERS, END_STREAM, FRAME_HEAD, HEADERS, frame_head


@pytest.mark.parametrize("size", [0, 1, 255, 65_535, 65_536, 1 << 20])
def test_head_is_that_of_hyperframe(size: int) -> None:
    body = b"x" * size
    data = DataFrame(5, data=body, flags=["END_STREAM"]).serialize()
    headers = HeadersFrame(2**31 - 1, data=body, flags=["END_STREAM", "END_HEADERS"]).serialize()
    assert frame_head(size, DATA, END_STREAM, 5) + body == data
    assert frame_head(size, HEADERS, END_STREAM | END_HEADERS, 2**31 - 1) + body == headers
    assert FRAME_HEAD.build(FRAME_HEAD.parse(data)) == data[:9]
