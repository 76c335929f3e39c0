"""Recorded frames: what is written equals the declaration, and is read whatever is cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.recording import (
    MARK,
    MARK_STRUCT,
    RECORDED_FRAME,
    RecordedFrame,
    encode_recorded,
    recorded_frames,
)

TIMES = st.integers(0, 2**62)
NAMES = st.text("0123456789.:>", max_size=60).map(str.encode)


@given(TIMES, st.booleans(), NAMES, st.binary(max_size=200))
def test_what_is_written_is_what_construct_builds(time_us: int, client: bool, name: bytes, frame: bytes) -> None:
    data = encode_recorded(time_us, client, name, frame)
    fields = {"time_us": time_us, "from_client": client, "connection": name, "frame": frame}
    assert data == RECORDED_FRAME.build({**fields, "connection_length": len(name), "frame_length": len(frame)})
    assert list(recorded_frames(data)) == [RecordedFrame(0, time_us, client, name.decode(), frame)]


@given(st.lists(st.tuples(TIMES, st.booleans(), NAMES, st.binary(max_size=40)), max_size=4), st.integers(0, 400))
def test_whole_frames_are_read_up_to_a_cut(wanted: list[tuple[int, bool, bytes, bytes]], cut: int) -> None:
    pieces = [encode_recorded(*one) for one in wanted]
    data = b"".join(pieces)[:cut]
    ends = [sum(map(len, pieces[: number + 1])) for number in range(len(pieces))]
    found = list(recorded_frames(data, 8))
    assert [one.frame for one in found] == [one[3] for one, end in zip(wanted, ends, strict=True) if end <= cut]
    assert [one.position for one in found] == [8 + begin for begin in [0, *ends][: len(found)]]


def test_what_is_no_recorded_frame_is_named() -> None:
    with pytest.raises(FrameError) as raised:
        list(recorded_frames(encode_recorded(1, True, b"c", b"frame") + b"\xff" * 400, 8))
    assert (raised.value.offset, raised.value.reason) == (8 + 10 + 1 + 4 + 5, "no recorded frame begins here")


def test_a_damaged_name_of_a_connection_is_read_all_the_same() -> None:
    (found,) = recorded_frames(encode_recorded(1, True, b"c\xff", b"frame"))
    assert (found.connection, found.frame) == ("c\ufffd", b"frame")


def test_a_frame_of_the_longest_size_may_follow_and_none_of_a_longer() -> None:
    """A frame is not returned before all its bytes are there."""
    start = encode_recorded(1, True, b"c", b"")[:-4]
    assert list(recorded_frames(start + (64 << 20).to_bytes(4, "big"))) == []
    with pytest.raises(FrameError):
        list(recorded_frames(start + ((64 << 20) + 1).to_bytes(4, "big")))


def test_marks() -> None:
    assert MARK_STRUCT.pack(8, 77) == MARK.build({"position": 8, "time_us": 77})
