"""20 minutes of all gRPC clients at our gRPC ports: `python -m tests.soak.grpc_clients`.

Each client sends, consumes and receives at the port of a broker and at a proxy before it. The memory of both server processes
is measured; at the end every acknowledged message must have been consumed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import attrs

from interop.peers.clients import Producer, PushConsumer, bodies
from interop.peers.grpc_peers.clients import CLIENTS
from interop.peers.grpc_peers.proxies import GrpcServers, our_proxy
from interop.peers.grpc_peers.scenarios import SimpleConsumer, Stage
from interop.peers.line_peer import PeerError
from interop.peers.process import PeerFailed, Process, wait_until
from interop.peers.servers import running
from tests.soak.run import growth_a_minute
from tests.soak.servers import anonymous_mib
from twisted_mq.blocking import Admin

SAMPLE_SECONDS = 5.0
PAUSE_SECONDS = 0.02
MOST_BEHIND = 200
"""Messages that a simple consumer is behind at most: the sender waits for it."""
DRAIN_SECONDS = 300.0
"""The time for the messages that are still on their way at the end. One that comes back does so after 30 to 60 s."""
MOST_MIB_A_MINUTE = 0.5
ENOUGH_SECONDS = 1200.0
"""Shorter runs say nothing of growth: caches and tables fill in the first minutes."""


@attrs.define(eq=False)
class ClientLoad:
    """A client at one port: a producer, a push consumer and a simple consumer of a topic, each with its group."""

    producer: Producer
    pushed: PushConsumer
    simple: SimpleConsumer
    group: str
    """The group of the simple consumer."""
    acknowledged: set[str] = attrs.field(factory=set)
    refused: int = 0
    drained_seconds: float | None = None
    """The time after the last send until both consumers had all; None if they never had."""
    received: set[str] = attrs.field(factory=set)

    @property
    def missing(self) -> int:
        """Return the number of acknowledged messages that the simple consumer has not received."""
        return len(self.acknowledged) - len(self.received & self.acknowledged)

    def send(self, ended: threading.Event) -> None:
        number = 0
        while not ended.wait(PAUSE_SECONDS):
            if len(self.acknowledged) - len(self.received) > MOST_BEHIND:
                continue
            number += 1
            try:
                self.producer.send(self.pushed.topic, f"body {number}", tag="soak", keys=[f"key-{number}"])
                self.acknowledged.add(f"body {number}")
            except PeerError:
                self.refused += 1

    def receive(self, ended: threading.Event) -> None:
        while not ended.is_set():
            self._take()

    def drain(self) -> None:
        """Wait until both consumers have all."""
        began = time.monotonic()
        self.pushed.wait(lambda messages: self.acknowledged <= set(bodies(messages)), DRAIN_SECONDS)
        wait_until(
            lambda: self._take() or not self.missing, lambda: f"{self.missing} messages are missing", DRAIN_SECONDS
        )
        self.drained_seconds = round(time.monotonic() - began, 1)

    def where(self, admin: Admin) -> dict[str, object]:
        """Return what servers know of messages that a consumer lacks: late ones wait or are in flight, lost ones do neither."""
        names = self.acknowledged - self.received
        lags = [one for one in admin.lag(self.group, self.pushed.topic) if one.waiting or one.in_flight]
        dead = {one.body.decode() for one in admin.dead_letters(self.group)}
        return {
            "missing": sorted(names)[:5],
            "not pushed": sorted(self.acknowledged - set(bodies(self.pushed.messages)))[:5],
            "lag": [[one.queue.topic, one.queue.queue_id, one.waiting, one.in_flight] for one in lags],
            "dead letters": len(names & dead),
        }

    def _take(self) -> None:
        try:
            for message in self.simple.receive():
                self.received.add(message["body"])  # also if the answer to its acknowledgement is late
                self.simple.ack(message)
        except PeerError:
            self.refused += 1


@attrs.define(eq=False)
class Measured:
    """A server process and its anonymous memory in MiB by the seconds of the run."""

    process: Process
    samples: list[tuple[float, float]] = attrs.field(factory=list)

    def figures(self) -> dict[str, float]:
        sizes = [size for _, size in self.samples]
        return {"most_mib": round(max(sizes), 1), "mib_a_minute": growth_a_minute(self.samples)}


class GrpcSoak:
    """A run in an empty directory."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self._directory = directory
        self._seconds = seconds
        self.loads: dict[str, ClientLoad] = {}
        self.measured: dict[str, Measured] = {}

    def run(self) -> None:
        """Raises PeerFailed where a consumer did not get what was acknowledged."""
        servers = GrpcServers("ours", self._directory / "servers", serves_both=True, proxy=our_proxy)
        with running(servers), ExitStack() as stack:
            self.measured = {"broker": Measured(servers.broker_process), "proxy": Measured(servers.served_by)}
            admin = stack.enter_context(Admin(servers.name_server))
            pool = stack.enter_context(ThreadPoolExecutor(4 * len(CLIENTS)))
            ports = {"broker": servers.broker_address, "proxy": servers.address}
            for name in CLIENTS:
                for port, address in ports.items():
                    self.loads[f"{name} at the {port}"] = self._load(stack, admin, name, port, address)
            self._last(pool, admin)

    def _load(self, stack: ExitStack, admin: Admin, name: str, port: str, address: str) -> ClientLoad:
        place = self._directory / port
        place.mkdir(exist_ok=True)
        peer = CLIENTS[name].start(address, place)
        stack.callback(peer.close)
        stage = Stage(CLIENTS[name], peer, admin)
        topic, group = stage.topic(), stage.group()
        pushed, simple = stage.push(stage.group(), topic), stage.simple(group, topic)
        return ClientLoad(stage.producer(topic), pushed, simple, group)

    def _last(self, pool: ThreadPoolExecutor, admin: Admin) -> None:
        ended = threading.Event()
        try:
            working = [pool.submit(work, ended) for load in self.loads.values() for work in (load.send, load.receive)]
            began = time.monotonic()
            while (elapsed := time.monotonic() - began) < self._seconds:
                for one in self.measured.values():
                    one.samples.append((elapsed, anonymous_mib(one.process)))
                time.sleep(SAMPLE_SECONDS)
        finally:
            ended.set()
        for one in working:
            one.result()
        drains = {name: pool.submit(load.drain) for name, load in self.loads.items()}
        try:
            for drained in drains.values():
                drained.result()
        except PeerFailed:
            for name, load in self.loads.items():
                if drains[name].exception() is not None:
                    print(json.dumps({"client": name, **load.where(admin)}))
            raise


def report(soak: GrpcSoak, seconds: float) -> dict[str, dict[str, float]]:
    """Print the results of each client, and return the metrics of the servers."""
    for name, load in soak.loads.items():
        counts: dict[str, float | None] = {
            "acknowledged": len(load.acknowledged),
            "missing": load.missing,
            "refused": load.refused,
        }
        counts["drained_s"] = load.drained_seconds
        print(json.dumps({"client": name, **counts}))
    figures = {name: one.figures() for name, one in soak.measured.items() if one.samples}
    print(json.dumps({"seconds": seconds, **figures}))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SOAK_SECONDS", ENOUGH_SECONDS)))
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="mq-grpc-soak-") as folder:
        soak = GrpcSoak(Path(folder), seconds)
        try:
            soak.run()
        finally:
            figures = report(soak, seconds)
    grown = [name for name, one in figures.items() if one["mib_a_minute"] > MOST_MIB_A_MINUTE]
    sys.exit(f"memory grows: {', '.join(grown)}" if grown and seconds >= ENOUGH_SECONDS else 0)


if __name__ == "__main__":
    main()
