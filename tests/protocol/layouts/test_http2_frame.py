"""Frames of HTTP/2 are those of hyperframe, and their fast forms those of their layouts."""

from __future__ import annotations

from typing import Any

import construct
import pytest
from hyperframe.frame import (
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from twisted_mq.protocol.layouts import http2_frame as http2

LAST = 2**31 - 1


@pytest.mark.parametrize("size", [0, 1, 255, 65_535, 65_536, 1 << 20])
def test_head_is_that_of_hyperframe(size: int) -> None:
    body = b"x" * size
    data = DataFrame(5, data=body, flags=["END_STREAM"]).serialize()
    headers = HeadersFrame(LAST, data=body, flags=["END_STREAM", "END_HEADERS"]).serialize()
    assert http2.frame_head(size, http2.DATA, http2.END_STREAM, 5) + body == data
    assert http2.frame(http2.HEADERS, http2.END_STREAM | http2.END_HEADERS, LAST, body) == headers
    head = http2.FRAME_HEAD.parse(data)
    assert (head.length_high << 16 | head.length_low, head.kind, head.stream_id) == (size, http2.DATA, 5)
    assert http2.FRAME_HEAD.build(head) == data[:9]


FRAMES = [
    (
        PriorityFrame(7, depends_on=5, stream_weight=200, exclusive=True),
        (http2.PRIORITY, http2.PRIORITY_FIELDS, http2.PRIORITY_PART),
        {"depends_on": 1 << 31 | 5, "weight": 200},
    ),
    (
        RstStreamFrame(7, error_code=8),
        (http2.RST_STREAM, http2.RESET_FIELDS, http2.RESET_PART),
        {"error_code": http2.ErrorCode.CANCEL},
    ),
    (
        SettingsFrame(0, {4: LAST}),
        (http2.SETTINGS, http2.SETTING_FIELDS, http2.SETTING_PART),
        {"number": http2.Setting.INITIAL_WINDOW_SIZE, "value": LAST},
    ),
    (PingFrame(0, b"12345678"), (http2.PING, http2.PING_FIELDS, http2.PING_PART), {"content": b"12345678"}),
    (
        GoAwayFrame(0, LAST, 11),
        (http2.GOAWAY, http2.GOAWAY_FIELDS, http2.GOAWAY_PART),
        {"last_stream_id": LAST, "error_code": http2.ErrorCode.ENHANCE_YOUR_CALM},
    ),
    (
        WindowUpdateFrame(7, window_increment=LAST),
        (http2.WINDOW_UPDATE, http2.WINDOW_FIELDS, http2.WINDOW_PART),
        {"increment": LAST},
    ),
]


@pytest.mark.parametrize(("theirs", "form", "values"), FRAMES, ids=[type(one[0]).__name__ for one in FRAMES])
def test_fields_are_those_of_hyperframe(
    theirs: Any, form: tuple[int, construct.Struct, Any], values: dict[str, Any]
) -> None:
    kind, layout, part = form
    content = part.pack(*values.values())
    assert http2.frame(kind, 0, theirs.stream_id, content) == theirs.serialize()
    parsed = layout.parse(content)
    assert {name: parsed[name] for name in values} == values
    assert part.unpack(content) == tuple(values.values())
    assert layout.build(values) == content


def test_codes_are_those_of_h2() -> None:
    from h2.errors import ErrorCodes
    from h2.settings import SettingCodes

    assert {one.name: int(one) for one in http2.ErrorCode} == {one.name: int(one) for one in ErrorCodes}
    assert {one.name: int(one) for one in http2.Setting} == {one.name: int(one) for one in SettingCodes}
