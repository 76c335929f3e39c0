"""Replication between processes: sends that wait for the slave, and a slave that catches up, for our pair and Apache's.

.venv/bin/python -m tests.bench.bench_ha [--sends 20000] [--mebibytes 256] [--dir DIR] [--kinds ours,apache]

One client keeps 64 sends of 128 bytes under way at a SYNC_MASTER with inSyncReplicas 2. Then, for each size of bodies, the
slave's process is stopped by a signal, the master takes batches, and the slave goes on: until it has acknowledged all, and
until its readers can have all. Processor time is that of a whole process, its threads and the kernel's part included.
Apache's pair runs with the whole JIT; it is left out where Java is missing. DIR is best in memory (/dev/shm).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from interop.peers.process import wait_until
from interop.peers.replicas import Member, ReplicaPair
from interop.peers.servers import ask
from interop.peers.toolchain import missing_tools, use_top_speed
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame

IN_FLIGHT = 64
BATCH_BYTES = 32_000
BODY_BYTES = (128, 1000, 4000)
QUEUES = 4
POLL_SECONDS = 0.01
TOPIC = "BenchmarkTest"
LOG_FILE_BYTES = 1 << 30
GET_MAX_OFFSET = 30
PATIENCE_MS = 600_000
"""A busy machine is slow, which is no error."""
_TICKS = os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Sends:
    """Sends that wait for the slave; processor times here and below are in microseconds."""

    a_second: float
    master_us: float
    slave_us: float


@attrs.frozen
class CatchUp:
    """Rate of a slave that was behind, in bytes of the log a second, and the cost of each message."""

    body_bytes: int
    acknowledged: float
    readable: float
    master_us: float
    slave_us: float


def fields(number: int, **more: str) -> dict[str, str]:
    properties = f"UNIQ_KEY\x01C0000202201A4E0E2F2A66E0{number:08X}\x02WAIT\x01{more.pop('wait', 'true')}\x02"
    return {"a": "bench", "b": TOPIC, "c": "TBW102", "d": "4", "e": str(number % 4), "f": "0",
            "g": "1795217217000", "h": "0", "i": properties, "j": "0", "k": "false", **more}  # fmt: skip


def sends(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield encode_frame(RemotingCommand(310, number, 0, "JAVA", 479, None, b"x" * 128, 0, ext_fields=fields(number)))


def batches(body_bytes: int, size_bytes: int) -> tuple[list[bytes], int]:
    """Frames with about so many bytes of bodies; and how many messages that is."""
    count = BATCH_BYTES // body_bytes
    body = encode_batch([Message(TOPIC, b"x" * body_bytes, properties={"WAIT": "false"}) for _ in range(count)])
    frames = []
    for number in range(size_bytes // (count * body_bytes)):
        header = fields(number, wait="false", m="true")
        frames.append(encode_frame(RemotingCommand(320, number, 0, "JAVA", 479, None, body, 0, ext_fields=header)))
    return frames, count * len(frames)


def drive(port: int, frames: list[bytes], in_flight: int) -> float:
    """Seconds for all frames, with that many unanswered at most. Raises RuntimeError for an answer that is no success."""
    decoder, sent, answered = FrameDecoder(), 0, 0
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while answered < len(frames):
            until = min(len(frames), answered + in_flight)
            if until > sent:
                connection.sendall(b"".join(frames[sent:until]))
                sent = until
            for answer in decoder.receive_data(connection.recv(1 << 16)):
                if answer.code != 0:
                    raise RuntimeError(f"code {answer.code}: {answer.remark}")
                answered += 1
    return time.perf_counter() - began


def _child(member: Member) -> subprocess.Popen[bytes]:
    assert member._process is not None
    return member._process.child


def processor_seconds(member: Member) -> float:
    """Return the processor time that a broker's process has used."""
    rest = Path(f"/proc/{_child(member).pid}/stat").read_text().rpartition(")")[2].split()
    return (int(rest[11]) + int(rest[12])) / _TICKS


def acknowledged(pair: ReplicaPair) -> int:
    """The slave's offset as the master knows it; 0 while no slave is connected."""
    return max((int(one["slaveAckOffset"]) for one in pair.master.ha_status()["haConnectionInfo"]), default=0)


def readable(member: Member) -> int:
    """Return the number of messages that the broker's readers can get."""
    return sum(_max_offset(member, queue_id) for queue_id in range(QUEUES))


def _max_offset(member: Member, queue_id: int) -> int:
    answer = ask(member.port, GET_MAX_OFFSET, {"topic": TOPIC, "queueId": str(queue_id)})
    header_bytes = int.from_bytes(answer[:4], "big") & 0xFFFFFF
    return int(json.loads(answer[4 : 4 + header_bytes]).get("extFields", {}).get("offset", 0))


def sync_sends(pair: ReplicaPair, count: int) -> Sends:
    """A fifth as many go before, unmeasured."""
    drive(pair.master.port, list(sends(count // 5)), IN_FLIGHT)
    master, slave = processor_seconds(pair.master), processor_seconds(pair.slave)
    seconds = drive(pair.master.port, list(sends(count)), IN_FLIGHT)
    return Sends(
        count / seconds,
        (processor_seconds(pair.master) - master) / count * 1e6,
        (processor_seconds(pair.slave) - slave) / count * 1e6,
    )


def catch_up(pair: ReplicaPair, body_bytes: int, size_bytes: int) -> CatchUp:
    """Stop the slave's process while the master takes so many bytes of bodies, and have it go on."""
    slave = _child(pair.slave)
    known, before = readable(pair.master), _master_end(pair)
    slave.send_signal(signal.SIGSTOP)
    try:
        frames, messages = batches(body_bytes, size_bytes)
        drive(pair.master.port, frames, 4)
        wait_until(lambda: readable(pair.master) >= known + messages, "the master has dispatched all")
        size, master_seconds, slave_seconds = (
            _master_end(pair) - before,
            *map(processor_seconds, (pair.master, pair.slave)),
        )
    finally:
        slave.send_signal(signal.SIGCONT)
    began = time.perf_counter()
    held = _seconds_until(lambda: acknowledged(pair) >= before + size, began)
    master_us = (processor_seconds(pair.master) - master_seconds) / messages * 1e6
    shown = _seconds_until(lambda: readable(pair.slave) >= known + messages, began)
    slave_us = (processor_seconds(pair.slave) - slave_seconds) / messages * 1e6
    return CatchUp(body_bytes, size / held, size / shown, master_us, slave_us)


def _master_end(pair: ReplicaPair) -> int:
    return int(pair.master.ha_status()["masterCommitLogMaxOffset"])


def _seconds_until(promise: Callable[[], bool], began: float) -> float:
    while not promise():
        time.sleep(POLL_SECONDS)
    return time.perf_counter() - began


def measure(kind: str, folder: Path, count: int, size_bytes: int) -> tuple[Sends, list[CatchUp]]:
    """Measure one pair; the first catching up is not counted."""
    settings = {"mappedFileSizeCommitLog": LOG_FILE_BYTES, "haHousekeepingInterval": PATIENCE_MS}
    waiting = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2, "waitTimeMillsInSendQueue": PATIENCE_MS}
    pair = ReplicaPair.make(kind, kind, folder, **settings, **waiting)
    pair.slave.settings.update(settings)
    try:
        pair.slave.start()
        wait_until(lambda: pair.master.ha_status()["haConnectionInfo"] != [], "the slave is connected")
        sent = sync_sends(pair, count)
        catch_up(pair, BODY_BYTES[0], size_bytes // 4)
        return sent, [catch_up(pair, body, size_bytes) for body in BODY_BYTES]
    finally:
        pair.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sends", type=int, default=20_000)
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--dir")
    parser.add_argument("--kinds", default="ours,apache")
    arguments = parser.parse_args()
    use_top_speed()
    for kind in arguments.kinds.split(","):
        if kind == "apache" and missing_tools():
            print("apache   Java is missing")
            continue
        folder = Path(tempfile.mkdtemp(prefix="bench-ha-", dir=arguments.dir))
        try:
            sent, caught_up = measure(kind, folder, arguments.sends, arguments.mebibytes << 20)
        finally:
            shutil.rmtree(folder)
        print(
            f"{kind:7} {sent.a_second:8,.0f} sync sends/s, us a send: master {sent.master_us:.1f} slave {sent.slave_us:.1f}"
        )
        for one in caught_up:
            print(
                f"{kind:7} {one.body_bytes:5} bytes: acknowledged {one.acknowledged / 1e6:6.1f} MB/s, readable"
                f" {one.readable / 1e6:6.1f} MB/s, us a message: master {one.master_us:.2f} slave {one.slave_us:.2f}"
            )


if __name__ == "__main__":
    main()
