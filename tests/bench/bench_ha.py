"""Replication between processes: sends that wait for the slave, and a slave that catches up, for our pair and Apache's.

.venv/bin/python -m tests.bench.bench_ha [--sends 20000] [--mebibytes 128] [--dir DIR] [--kinds ours,apache]

One client keeps 64 sends of 128 bytes under way at a SYNC_MASTER with inSyncReplicas 2. Then the slave is emptied and
started again on a log of batches. Apache's pair is left out where Java is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from interop.peers.process import wait_until
from interop.peers.replicas import ReplicaPair
from interop.peers.toolchain import missing_tools
from protocol.command import RemotingCommand
from protocol.framing import FrameDecoder, encode_frame
from protocol.message import Message
from protocol.message_batch import encode_batch

IN_FLIGHT = 64
BATCH = 32
BATCH_BODY = b"x" * 1000
LOG_FILE_BYTES = 1 << 30
_TICKS = os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Figures:
    """What one pair did."""

    kind: str
    sends_a_second: float
    master_us_a_send: float
    catch_up_bytes_a_second: float


def fields(number: int, **more: str) -> dict[str, str]:
    properties = f"UNIQ_KEY\x01C0000202201A4E0E2F2A66E0{number:08X}\x02WAIT\x01{more.pop('wait', 'true')}\x02"
    return {"a": "bench", "b": "BenchmarkTest", "c": "TBW102", "d": "4", "e": str(number % 4), "f": "0",
            "g": "1795217217000", "h": "0", "i": properties, "j": "0", "k": "false", **more}  # fmt: skip


def sends(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield encode_frame(RemotingCommand(310, number, 0, "JAVA", 479, None, b"x" * 128, 0, ext_fields=fields(number)))


def batches(size_bytes: int) -> Iterator[bytes]:
    body = encode_batch([Message("BenchmarkTest", BATCH_BODY, properties={"WAIT": "false"}) for _ in range(BATCH)])
    for number in range(size_bytes // len(body)):
        header = fields(number, wait="false", m="true")
        yield encode_frame(RemotingCommand(320, number, 0, "JAVA", 479, None, body, 0, ext_fields=header))


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


def processor_seconds(pair: ReplicaPair) -> float:
    """What the master has used so far."""
    process = pair.master._process
    assert process is not None
    rest = Path(f"/proc/{process.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(rest[11]) + int(rest[12])) / _TICKS


def acknowledged(pair: ReplicaPair) -> int:
    return max((int(one["slaveAckOffset"]) for one in pair.master.ha_status()["haConnectionInfo"]), default=0)


def sync_sends(pair: ReplicaPair, count: int) -> tuple[float, float]:
    """(sends a second, the master's microseconds of processor time a send); a tenth as many go before, unmeasured."""
    drive(pair.master.port, list(sends(count // 10)), IN_FLIGHT)
    before = processor_seconds(pair)
    seconds = drive(pair.master.port, list(sends(count)), IN_FLIGHT)
    return count / seconds, (processor_seconds(pair) - before) / count * 1e6


def catch_up(pair: ReplicaPair, size_bytes: int) -> float:
    """Bytes a second from the first acknowledgement to the last one."""
    pair.slave.kill()
    shutil.rmtree(pair.slave.store)
    drive(pair.master.port, list(batches(size_bytes)), 4)
    end = int(pair.master.ha_status()["masterCommitLogMaxOffset"])
    pair.slave.start()
    wait_until(lambda: acknowledged(pair) > 0, "the slave begins")
    began, first = time.perf_counter(), acknowledged(pair)
    if first >= end:
        return float("inf")
    wait_until(lambda: acknowledged(pair) >= end, "the slave has all")
    return (end - first) / (time.perf_counter() - began)


def measure(kind: str, folder: Path, count: int, size_bytes: int) -> Figures:
    settings = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2, "mappedFileSizeCommitLog": LOG_FILE_BYTES}
    pair = ReplicaPair.make(kind, kind, folder, **settings)
    pair.slave.settings["mappedFileSizeCommitLog"] = LOG_FILE_BYTES
    try:
        pair.slave.start()
        wait_until(lambda: pair.master.ha_status()["haConnectionInfo"] != [], "the slave is connected")
        sends_a_second, processor = sync_sends(pair, count)
        return Figures(kind, sends_a_second, processor, catch_up(pair, size_bytes))
    finally:
        pair.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sends", type=int, default=20_000)
    parser.add_argument("--mebibytes", type=int, default=128)
    parser.add_argument("--dir")
    parser.add_argument("--kinds", default="ours,apache")
    arguments = parser.parse_args()
    print(f"{'pair':8} {'sync sends/s':>13} {'master us/send':>15} {'catch-up MB/s':>14}")
    for kind in arguments.kinds.split(","):
        if kind == "apache" and missing_tools():
            print("apache   Java is missing")
            continue
        folder = Path(tempfile.mkdtemp(prefix="bench-ha-", dir=arguments.dir))
        try:
            one = measure(kind, folder, arguments.sends, arguments.mebibytes << 20)
        finally:
            shutil.rmtree(folder)
        print(
            f"{one.kind:8} {one.sends_a_second:13,.0f} {one.master_us_a_send:15.1f}"
            f" {one.catch_up_bytes_a_second / 1e6:14.1f}"
        )


if __name__ == "__main__":
    main()
