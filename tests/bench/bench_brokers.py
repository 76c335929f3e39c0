"""Measures how much more several brokers of one machine take than one: `mq up` beside `mq up --brokers N`.

.venv/bin/python -m tests.bench.bench_brokers [--brokers 2] [--seconds 8] [--rounds 3]

One sender a broker writes the same block of sends again as soon as all of it is answered, so that the brokers are bound by
their processors and the senders cost little. Printed are messages a second, and processor time a message of brokers and
senders, as medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.bench_broker import sends

BLOCK = 64
WARM_SECONDS = 1.0
LENGTH_BYTES = 4


def answers_of(data: bytes, rest: int) -> tuple[int, int]:
    """Count the frames that begin in these bytes after the first `rest`. Returns that, and the bytes that the last one lacks."""
    count, place = 0, rest
    while place + LENGTH_BYTES <= len(data):
        place += LENGTH_BYTES + int.from_bytes(data[place : place + LENGTH_BYTES], "big")
        count += 1
    return count, place - len(data)


def send_for(port: int, seconds: float, result: Any) -> None:
    """Send blocks to a broker; puts (messages a second, own processor time a message in us)."""
    block = b"".join(sends(BLOCK, 0))
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(next(sends(1, 0)))  # makes the topic
        link.recv(65536)
        for counted, span in ((False, WARM_SECONDS), (True, seconds)):
            sent, begin = 0, time.perf_counter()
            used = resource.getrusage(resource.RUSAGE_SELF)
            while time.perf_counter() - begin < span:
                link.sendall(block)
                read = b""
                while True:
                    read += link.recv(1 << 20)
                    count, lacking = answers_of(read, 0)
                    if count == BLOCK and lacking == 0:
                        break
                sent += BLOCK
            if counted:
                after = resource.getrusage(resource.RUSAGE_SELF)
                own = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
                result.put((sent / (time.perf_counter() - begin), own / sent * 1e6))


def processor_seconds(processes: list[int]) -> float:
    """User and system time of these processes so far."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(brokers: int) -> Iterator[tuple[list[int], list[int]]]:
    """A cluster with that many brokers; their processes and ports."""
    words = ["up", "--temporary", "--json", "--port", "14911" if brokers > 1 else "0", "--grpc-port", "-1"]
    words += ["--namesrv-port", "0", *(["--brokers", str(brokers)] if brokers > 1 else [])]
    command = [sys.executable, "-c", "from twisted_mq.cli.start import main; main()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            facts = json.loads(server.stdout.readline())
            addresses = list(facts["brokers"].values()) if brokers > 1 else [facts["broker"]]
            children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            processes = [int(one) for one in children] if brokers > 1 else [server.pid]
            yield processes, [int(one.rpartition(":")[2]) for one in addresses]
        finally:
            server.terminate()


def measure(brokers: int, seconds: float) -> tuple[float, float, float]:
    """Messages a second, brokers' and senders' processor time a message in us."""
    context = get_context("spawn")
    with running(brokers) as (processes, ports):
        result = context.Queue()
        before = processor_seconds(processes)
        senders = [context.Process(target=send_for, args=(port, seconds, result)) for port in ports]
        begin = time.perf_counter()
        for one in senders:
            one.start()
        figures = [result.get(timeout=seconds + 60) for _ in senders]
        used, span = processor_seconds(processes) - before, time.perf_counter() - begin
        for one in senders:
            one.join()
    rate = sum(one for one, _ in figures)
    sending = seconds + WARM_SECONDS  # the brokers idle while a sender's interpreter starts
    return rate, used / (rate * min(sending, span)) * 1e6, statistics.mean(own for _, own in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows: dict[int, list[tuple[float, float, float]]] = {1: [], args.brokers: []}
    for _ in range(args.rounds):
        for count, row in rows.items():
            row.append(measure(count, args.seconds))
    print(f"{'brokers':>8}{'messages/s':>12}{'ratio':>7}{'broker us':>11}{'sender us':>11}")
    for count, row in rows.items():
        rate, broker, sender = (statistics.median(one) for one in zip(*row, strict=True))
        ratio = statistics.median(mine[0] / one[0] for mine, one in zip(row, rows[1], strict=True))
        print(f"{count:8}{rate:12,.0f}{ratio:7.2f}{broker:11.1f}{sender:11.2f}")


if __name__ == "__main__":
    main()
