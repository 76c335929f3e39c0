"""Recorded frames from segments, packets and captures; without Spark."""

from __future__ import annotations

import io
import random
from pathlib import Path

import dpkt
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from tests.support.captures import CAPTURES, frame_index, frames
from twisted_mq.protocol.layouts.recording import MAGIC
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.tables.frame_files import parts_of, seen_in
from twisted_mq.spark.tables.frame_source import SCHEMA, FrameReader, FrameSource
from twisted_mq.spark.tables.frames import FROM_CLIENT, TO_CLIENT
from twisted_mq.spark.tables.packets import packet_frames
from twisted_mq.storage.recording import SegmentWriter

SCENARIO = "producer_sync"
CLIENT, SERVER = b"\x0a\0\0\x07", b"\x0a\0\0\x01"
CONNECTION = "10.0.0.7:40000>10.0.0.1:9876"


def recorded() -> list[tuple[bool, bytes]]:
    """Return each frame of the scenario, and True if its client sent it."""
    data = frames(SCENARIO)
    return [
        (one["direction"].startswith("client"), data[one["offset"] : one["offset"] + one["length"]])
        for one in frame_index(SCENARIO)
    ]


def rows(path: Path, keep_secrets: bool = False) -> list[dict[str, object]]:
    reader = FrameReader(str(path), keep_secrets)
    return [row for split in reader.partitions() for batch in reader.read(split) for row in batch.to_pylist()]


def test_segments_are_cut_at_marks_and_give_what_was_recorded(tmp_path: Path) -> None:
    writer = SegmentWriter(str(tmp_path), segment_bytes=20_000, mark_bytes=1000)
    wanted = recorded()
    for number, (from_client, frame) in enumerate(wanted):
        writer.append(1_000_000 + number, from_client, CONNECTION.encode(), frame)
    writer.close()
    parts = parts_of(str(tmp_path), 2000)
    assert len(parts) > len(list(tmp_path.glob("*.mqrec"))) > 0
    tasks = [split.value for split in FrameReader(str(tmp_path), part_bytes=2000).partitions()]
    assert len(tasks) > 1 and [part for task in tasks for part in task] == parts
    found = [seen for part in parts for seen in seen_in(part)]
    assert [(one.direction == FROM_CLIENT, one.frame) for one in found] == wanted
    assert {one.connection for one in found} == {CONNECTION}
    assert [one.time_us for one in found] == [1_000_000 + number for number in range(len(wanted))]


def test_a_segment_that_is_being_written_ends_with_its_last_whole_frame(tmp_path: Path) -> None:
    writer = SegmentWriter(str(tmp_path))
    for from_client, frame in recorded()[:3]:
        writer.append(7, from_client, b"c", frame)
    writer.flush()
    (path,) = tmp_path.glob("*.mqrec")
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert len(rows(tmp_path)) == 2
    path.write_bytes(b"NOTMAGIC" + data[8:])
    with pytest.raises(StoreReadError, match="is not a segment of recorded frames"):
        rows(tmp_path)
    path.write_bytes(MAGIC + b"\xff" * 300 + data)
    with pytest.raises(StoreReadError, match="at offset 8: no recorded frame begins here"):
        rows(tmp_path)


def packets(wanted: list[tuple[bool, bytes]], most: int) -> list[bytes]:
    """Return the packets of a connection: its begin, and all frames in pieces of at most this many bytes."""
    numbers = {True: (1 << 32) - 500, False: 77}  # the client's sequence numbers wrap around
    found = [packet(True, numbers[True] - 1, b"", dpkt.tcp.TH_SYN)]
    found.append(packet(False, numbers[False] - 1, b"", dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK))
    for from_client, frame in wanted:
        for begin in range(0, len(frame), most):
            piece = frame[begin : begin + most]
            found.append(packet(from_client, numbers[from_client], piece))
            numbers[from_client] = (numbers[from_client] + len(piece)) % (1 << 32)
    return found


def packet(from_client: bool, sequence: int, data: bytes, flags: int = dpkt.tcp.TH_ACK) -> bytes:
    ports = (40000, 9876) if from_client else (9876, 40000)
    ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], seq=sequence % (1 << 32), flags=flags, data=data)
    ip = dpkt.ip.IP(src=ends[0], dst=ends[1], p=dpkt.ip.IP_PROTO_TCP, data=tcp)
    ip.len = len(bytes(ip))
    return bytes(dpkt.ethernet.Ethernet(data=ip))


def captured(found: list[bytes], writer: type = dpkt.pcap.Writer) -> io.BytesIO:
    file = io.BytesIO()
    made = writer(file)
    for number, one in enumerate(found):
        made.writepkt(one, ts=1_795_216_734 + number / 1000)
    return io.BytesIO(file.getvalue())


@pytest.mark.parametrize("writer", [dpkt.pcap.Writer, dpkt.pcapng.Writer], ids=["pcap", "pcapng"])
def test_packets_are_put_together(writer: type) -> None:
    wanted = recorded()
    random_numbers = random.Random(7)
    found = packets(wanted, 100)
    for place in range(2, len(found) - 1, 5):
        found[place], found[place + 1] = found[place + 1], found[place]  # out of order
    found[9:9] = [random_numbers.choice(found[2:9])]  # sent twice
    found.insert(4, bytes(dpkt.ethernet.Ethernet(data=b"not IP", type=0x88CC)))
    seen = list(packet_frames(captured(found, writer), "x"))
    for from_client in (True, False):
        assert [frame for _, one, _, frame in seen if one is from_client] == [
            frame for one, frame in wanted if one is from_client
        ]
    assert {connection for _, _, connection, _ in seen} == {CONNECTION}
    assert 1_795_216_734_000_000 < seen[0][0] < 1_795_216_740_000_000


def test_a_capture_that_begins_amid_a_connection_goes_on_at_the_next_frame() -> None:
    wanted = recorded()
    found = packets(wanted, 1 << 16)[3:]  # without the begin, and the first frame
    seen = list(packet_frames(captured(found), "x"))
    assert sorted(frame for *_, frame in seen) == sorted(frame for _, frame in wanted[1:])
    assert {connection for _, _, connection, _ in seen} == {CONNECTION}


def test_a_file_of_packets_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(captured(packets(recorded(), 1000)).getvalue())
    (tmp_path / "notes.txt").write_text("nothing")
    found = rows(tmp_path)
    assert len(found) == len(recorded())
    assert {row["direction"] for row in found} == {FROM_CLIENT, TO_CLIENT}
    (tmp_path / "b.pcapng").write_bytes(b"not packets at all, and long enough for a header")
    with pytest.raises(StoreReadError, match=r"b\.pcapng: is neither pcap nor pcapng"):
        rows(tmp_path)


def test_secrets_are_kept_on_request() -> None:
    path = CAPTURES / "remoting" / "acl_signed.frames"
    hidden, kept = (
        [dict(row["extFields"]) for row in rows(path, keep)]  # type: ignore[call-overload]
        for keep in (False, True)
    )
    assert {one["Signature"] for one in hidden if "Signature" in one} == {"***"}
    signed = [one for one in kept if "Signature" in one]
    assert signed and all(one["Signature"] != "***" and one["AccessKey"] != "***" for one in signed)
    options = {"path": "x", "keepSecrets": "true", "maxPartitionBytes": "1m"}
    reader = FrameSource(options).reader(from_arrow_schema(SCHEMA))
    assert (reader.path, reader.keep_secrets, reader.part_bytes) == ("x", True, 1 << 20)
    with pytest.raises(WrongOption, match="true or false is needed"):
        FrameSource({"path": "x", "keepSecrets": "1"}).reader(None)  # type: ignore[arg-type]
