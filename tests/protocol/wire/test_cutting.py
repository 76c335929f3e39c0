"""Frames cut out of a stream that is only passed on, in whatever pieces it comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.wire.cutting import FrameCutter
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES, frame

FRAMES = [frame(0, b'{"code":105}', b""), frame(0, b'{"code":10}', b"body" * 9), frame(1, b"h", b"x")]
STREAM = b"".join(FRAMES)


@given(st.lists(st.integers(0, len(STREAM)), max_size=6).map(sorted))
def test_frames_come_whole_and_what_is_not_one_yet_is_held(cuts: list[int]) -> None:
    cutter, found, begin = FrameCutter(), [], 0
    ends = [sum(map(len, FRAMES[: number + 1])) for number in range(len(FRAMES))]
    for end in [*cuts, len(STREAM)]:
        found += cutter.receive_data(STREAM[begin:end])
        whole = [one for one in ends if one <= end]
        assert cutter.held == STREAM[max(whole, default=0) : end]
        assert found == FRAMES[: len(whole)]
        begin = end
    assert (found, cutter.held, cutter.failed) == (FRAMES, b"", False)


def test_a_length_that_no_frame_has_ends_it_behind_the_frames_before() -> None:
    cutter = FrameCutter()
    assert cutter.receive_data(STREAM + MAX_FRAME_BYTES.to_bytes(4, "big") + b"rest") == FRAMES
    assert cutter.failed
