"""Segments of recorded frames and their marks."""

from __future__ import annotations

from pathlib import Path

from twisted_mq.protocol.layouts.recording import MAGIC, MARK_STRUCT, recorded_frames
from twisted_mq.storage.recording import SegmentWriter

FRAME = b"f" * 100


def test_segments_are_bounded_and_marks_lead_to_frames(tmp_path: Path) -> None:
    writer = SegmentWriter(str(tmp_path / "new"), segment_bytes=1000, mark_bytes=300)
    for number in range(30):
        writer.append(number, bool(number % 2), b"c", b"%02d" % number + FRAME)
    writer.close()
    writer.close()
    segments = sorted((tmp_path / "new").glob("*.mqrec"))
    assert writer.frames == 30 and len(segments) == 4
    numbers = []
    for segment in segments:
        data = segment.read_bytes()
        assert data.startswith(MAGIC) and len(data) < 1200
        found = list(recorded_frames(data[len(MAGIC) :], len(MAGIC)))
        numbers += [one.time_us for one in found]
        marks = list(MARK_STRUCT.iter_unpack(segment.with_suffix(".mqmarks").read_bytes()))
        assert set(marks) <= {(one.position, one.time_us) for one in found}
        assert marks[0] == (len(MAGIC), found[0].time_us)
        assert len(marks) == (3 if len(found) == 9 else 1)
    assert numbers == list(range(30))


def test_a_run_begins_a_segment_of_its_own_and_is_seen_when_flushed(tmp_path: Path) -> None:
    for _ in range(2):
        writer = SegmentWriter(str(tmp_path))
        writer.append(1, True, b"c", FRAME)
        writer.flush()
        newest = sorted(tmp_path.glob("*.mqrec"))[-1]
        assert len(list(recorded_frames(newest.read_bytes()[len(MAGIC) :]))) == 1
        writer.close()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "0000000000.mqmarks",
        "0000000000.mqrec",
        "0000000001.mqmarks",
        "0000000001.mqrec",
    ]
