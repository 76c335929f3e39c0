"""Measures new topics beside many at a real broker with its name server: the time until it serves, then topic by topic.

.venv/bin/python -m tests.bench.bench_topics [--topics 20000] [--new 20] [--dir DIRECTORY]

A topic is made by an administrator's request, and by a send. An answer comes when the topic is on disk and the name server
knows it. Processor time is the broker's, with what it does by itself until half a second after the answer.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.bench_broker import send_fields
from tests.support.bench_stores import temporary_folder
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import decode_frame, encode_frame
from twisted_mq.storage.tables.config_tables import TopicTable

PAUSE_SECONDS = 0.5
QUIET_SECONDS = 6.0
"""The first registration of many topics is over then."""
_LENGTH = struct.Struct(">I")


class Broker:
    """A broker's process, and a connection to it."""

    def __init__(self, store: str, port: int) -> None:
        settings = ("brokerIP1=127.0.0.1", f"haListenPort={port + 1}")
        command = [str(Path(sys.executable).parent / "twistd"), "--nodaemon", "--pidfile=", "mqbroker"]
        command += [f"--embedded-namesrv={port + 2}", "--bind", "127.0.0.1", "--port", str(port), "--store", store]
        command += [word for setting in settings for word in ("--set", setting)]
        began = time.monotonic()
        with open(f"{store}.log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self._socket = self._connected(port)
        self.ready_seconds = time.monotonic() - began

    def _connected(self, port: int) -> socket.socket:
        while self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", port), 30)
            except OSError:
                time.sleep(0.005)
        raise SystemExit("the broker does not start")

    def call(self, command: RemotingCommand) -> None:
        """Send a request and wait for its answer."""
        self._socket.sendall(encode_frame(command))
        data = b""
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            data += self._socket.recv(1 << 16)
        answer = decode_frame(data)
        if answer.code:
            raise SystemExit(f"{answer.code}: {answer.remark}")

    @property
    def processor_ms(self) -> float:
        """Return the processor time of all threads so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6

    def stop(self) -> None:
        self._socket.close()
        self.process.terminate()
        self.process.wait(60)


def topic_request(number: int) -> RemotingCommand:
    fields = {"topic": f"New{number}", "defaultTopic": "TBW102", "readQueueNums": "8", "writeQueueNums": "8", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
    return RemotingCommand(RequestCode.UPDATE_AND_CREATE_TOPIC, number, ext_fields=fields)


def send_request(number: int) -> RemotingCommand:
    fields = send_fields(number, b=f"Sent{number}", e="0")
    return RemotingCommand(RequestCode.SEND_MESSAGE_V2, number, body=b"x" * 100, ext_fields=fields)


def measured(broker: Broker, name: str, make: Callable[[int], RemotingCommand], count: int) -> str:
    """Return a row of the table; the first topic is on its own, because it may find nothing encoded."""
    walls, processor = [], []
    for number in range(count + 1):
        before, began = broker.processor_ms, time.perf_counter()
        broker.call(make(number))
        walls.append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE_SECONDS)
        processor.append(broker.processor_ms - before)
    first, *rest = walls
    return f"{name:24}{first:10.1f}{min(rest):10.1f}{statistics.median(rest):10.1f}{statistics.median(processor):12.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--new", type=int, default=20)
    parser.add_argument("--port", type=int, default=31911, help="and the two after it")
    parser.add_argument("--dir", default=None)
    arguments = parser.parse_args()
    with temporary_folder(arguments.dir) as folder:
        store = os.path.join(folder, "store")
        table = TopicTable(os.path.join(store, "config", "topics.json"))
        names = [f"Topic{number}" for number in range(arguments.topics)]
        table.topics |= {name: TopicConfig(topic_name=name, read_queue_nums=8, write_queue_nums=8) for name in names}
        table.save()
        broker = Broker(store, arguments.port)
        try:
            print(f"ready in {broker.ready_seconds:.2f} s, {broker.processor_ms:.0f} ms of processor time")
            time.sleep(QUIET_SECONDS)
            print(f"{'ms':24}{'first':>10}{'least':>10}{'median':>10}{'processor':>12}")
            for name, make in (("by a request", topic_request), ("by a send", send_request)):
                print(measured(broker, name, make, arguments.new), flush=True)
            print(measured(broker, "a send to a known topic", send_request, arguments.new))
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
