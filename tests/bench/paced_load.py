"""Sends at a steady pace and notes how long each answer took: the load of `bench_hour`, in a process of its own.

.venv/bin/python -m tests.bench.paced_load PORT --seconds 3600 --rate 500 > latencies

Sends leave when they are due, whatever the broker does, so that a broker that stands still is seen by all sends of that
time. Printed are a line for each window: its number of answers and its longest times.
"""

from __future__ import annotations

import argparse
import array
import json
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

import attrs

from tests.bench.bench_curves import OPAQUE, send_frames
from tests.bench.frame_load import LOOPBACK, SUCCESS, LoadFailed

_LENGTH = struct.Struct(">I")
_HEADER = 8
_OPAQUE = b'"opaque":'
CONNECTIONS, BODY_BYTES = 8, 1024
LATE_SECONDS = 30.0
"""Answers may come so long after the last send."""
PARTS = (0.5, 0.99, 0.999, 0.9999, 1.0)


def quantiles(times: Sequence[float]) -> list[float]:
    """Return the times, in ms, within which these PARTS of the answers came."""
    ordered = sorted(times)
    return [round(ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1000, 3) for part in PARTS]


@attrs.define(eq=False)
class PacedLoad:
    """Some connections to one broker, and the times at which sends left that have no answer yet."""

    port: int
    frame: Callable[[int], bytes]
    times: array.array[float] = attrs.field(factory=lambda: array.array("d"))
    """Seconds of each answered send, in the order of the answers."""
    refused: int = 0
    _sockets: list[socket.socket] = attrs.field(factory=list)
    _received: dict[int, bytes] = attrs.field(factory=dict)
    _left: dict[int, float] = attrs.field(factory=dict)

    def run(self, seconds: float, rate: float) -> None:
        """Send so many a second for that long, and wait for the answers. Raises LoadFailed."""
        epoll = select.epoll()
        for _ in range(CONNECTIONS):
            one = socket.create_connection((LOOPBACK, self.port), 30)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.append(one)
            self._received[one.fileno()] = b""
            epoll.register(one, select.EPOLLIN)
        by_number = {one.fileno(): one for one in self._sockets}
        start, sent, most = time.monotonic(), 0, int(seconds * rate)
        while sent < most or self._left:
            now = time.monotonic()
            if now > start + seconds + LATE_SECONDS:
                raise LoadFailed(f"{len(self._left)} sends without an answer")
            while sent < most and start + sent / rate <= now:
                self._send(sent)
                sent += 1
            wait = start + sent / rate - time.monotonic() if sent < most else 1.0
            for number, _ in epoll.poll(max(wait, 0)):
                self._read(by_number[number])
        for one in self._sockets:
            one.close()

    def _send(self, number: int) -> None:
        self._left[OPAQUE + number] = time.monotonic()
        self._sockets[number % CONNECTIONS].sendall(self.frame(number))

    def _read(self, connection: socket.socket) -> None:
        came = connection.recv(1 << 20)
        if not came:
            raise LoadFailed("the broker closed a connection")
        now, place = time.monotonic(), 0
        data = self._received[connection.fileno()] + came
        while len(data) >= place + _HEADER:
            end = place + _LENGTH.size + _LENGTH.unpack_from(data, place)[0]
            if len(data) < end:
                break
            digits = data[place:end].partition(_OPAQUE)[2]
            opaque = int(digits[: len(str(OPAQUE))])
            self.times.append(now - self._left.pop(opaque))
            self.refused += not data.startswith(SUCCESS, place + _HEADER)
            place = end
        self._received[connection.fileno()] = data[place:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--windows", type=int, default=12, help="parts of the time that are told by themselves")
    arguments = parser.parse_args()
    load = PacedLoad(arguments.port, send_frames(["Bench"], body_bytes=BODY_BYTES))
    load.run(arguments.seconds, arguments.rate)
    size = max(1, len(load.times) // arguments.windows)
    windows = [quantiles(load.times[place : place + size]) for place in range(0, len(load.times), size)]
    whole = {"answers": len(load.times), "refused": load.refused, "ms": quantiles(load.times), "windows": windows}
    json.dump(whole, sys.stdout)


if __name__ == "__main__":
    main()
