"""10,000 idle streams at the gRPC port: the memory that they take, and what an honest client beside them notices.

.venv/bin/python -m tests.bench.bench_grpc_idle [--streams 10000] [--calls 2000]

A broker in memory runs as a process of its own. An honest client sends one message after the other: alone, then beside the
streams, then once they are gone. They are Telemetry streams, 1,000 a connection, each of a client of its own that sent settings.
"""

from __future__ import annotations

import argparse
import select
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from hpack import Encoder
from hyperframe.frame import DataFrame, HeadersFrame, SettingsFrame, WindowUpdateFrame

from tests.bench.bench_grpc_servers import TOPIC, Server
from tests.support.grpc_client import message
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc.framing import frame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STREAMS_OF_CONNECTION = 1000


class Idle:
    """Connections with open streams. Everything that comes is read."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._sockets: list[socket.socket] = []

    def open(self, streams: int) -> None:
        for first in range(0, streams, STREAMS_OF_CONNECTION):
            connection = socket.create_connection(self._address)
            self._sockets.append(connection)
            for piece in self._frames(first, min(STREAMS_OF_CONNECTION, streams - first)):
                connection.sendall(piece)
                self.drain(0)

    def _frames(self, first: int, count: int) -> Iterator[bytes]:
        encoder = Encoder()
        yield PREFACE + SettingsFrame(0).serialize() + WindowUpdateFrame(0, window_increment=1 << 30).serialize()
        settings = v2.Settings(client_type=v2.ClientType.PRODUCER, publishing={"topics": [{"name": TOPIC}]})
        body = frame(v2.TelemetryCommand(settings=settings).SerializeToString())
        for number in range(count):
            head = [
                (":method", "POST"), (":scheme", "http"), (":path", f"/{v2.SERVICE}/Telemetry"), (":authority", "mq"),
                ("te", "trailers"), ("content-type", "application/grpc"), ("x-mq-client-id", f"idle@{first + number}"),
                ("x-mq-language", "JAVA"),
            ]  # fmt: skip
            stream = 1 + 2 * number
            headers = HeadersFrame(stream, data=encoder.encode(head), flags=["END_HEADERS"])
            yield headers.serialize() + DataFrame(stream, data=body).serialize()

    def drain(self, seconds: float) -> int:
        """Read what has come within a time; return how many bytes."""
        count, end = 0, time.monotonic() + seconds
        while True:
            ready, _, _ = select.select(self._sockets, [], [], max(0.0, end - time.monotonic()))
            count += sum(len(one.recv(1 << 20)) for one in ready)
            if not ready or time.monotonic() > end:
                return count

    def close(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets.clear()


def anonymous_mib(server: Server) -> float:
    status = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) / 1024


def sends(server: Server, count: int) -> tuple[float, float]:
    """Median and 99th percentile of sends one after the other, in ms."""
    request, took = v2.SendMessageRequest(messages=[message(TOPIC, b"x" * 128)]), []
    for _ in range(count):
        began = time.perf_counter()
        server.send(request)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=2000)
    arguments = parser.parse_args()
    server = Server("own with broker")
    idle = Idle(server.address)
    try:
        sends(server, arguments.calls)
        print(f"{'':16}{'MiB':>8}{'median ms':>12}{'p99 ms':>10}")

        def show(when: str) -> None:
            median, worst = sends(server, arguments.calls)
            print(f"{when:16}{anonymous_mib(server):8.1f}{median:12.2f}{worst:10.2f}", flush=True)

        show("alone")
        began = time.monotonic()
        idle.open(arguments.streams)
        while idle.drain(1.0):
            pass
        print(f"{arguments.streams} streams were opened and settled in {time.monotonic() - began - 1:.1f} s")
        show("beside them")
        idle.close()
        time.sleep(7)  # their clients are gone after 5 s
        show("after them")
    finally:
        idle.close()
        server.stop()


if __name__ == "__main__":
    main()
