"""All servers in one process whose reactor measures its turns: `python -m tests.cost.server STORE`.

Prints one JSON object with the ports. Then each line of its input is answered by one line of JSON: what was measured since
the last one. A line that is an URL is fetched first, as a client asks an address server.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet import stdio
from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.protocols.basic import LineReceiver

from interop.peers.process import free_port
from twisted_mq import logs
from twisted_mq.clocks import follow_monotonic_time
from twisted_mq.config.garbage import GarbageLooks
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.console.service import ConsoleService
from twisted_mq.console.settings import ConsoleSettings
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.recording.advertised import Advertised, RouteRewrite
from twisted_mq.recording.proxy import ProxyFactory
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.routing.address_server import http_get
from twisted_mq.storage.files.system_calls import raise_descriptor_limit
from twisted_mq.testing import EmbeddedCluster

reactor: Any = global_reactor
QUEUES = 4096
GROUPS = 100
PAGE_SECONDS = 3.0
FULL = 2
"""The generation of a full collection."""
OPTIONS = {
    "ha_listen_port": 0, "broker_role": "ASYNC_MASTER", "mapped_file_size_commit_log": 16 << 20, "revive_queue_num": 1,
    "metrics_exporter_type": MetricsExporterType.PROM, "enable_property_filter": True,
}  # fmt: skip


class TurnMeter:
    """The processor time of the reactor's thread, by callback: a read of one connection, a timed call, a thread's result.

    `round` is the most that all callbacks between two looks at the sockets took. The interpreter's full collections, which
    come wherever objects are made, are counted apart: `collection` is the longest.
    """

    def __init__(self) -> None:
        self.collection, self._collected, self._began = 0.0, 0.0, 0.0
        self.worst, self.where, self.round, self._in_round = 0.0, "", 0.0, 0.0

    def measured(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A callback that is measured."""

        def run(*arguments: Any, **named: Any) -> Any:
            self._collected, before = 0.0, time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                self._took(time.thread_time() - before - self._collected, call, arguments)

        return run

    def _took(self, seconds: float, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._in_round += seconds
        self.round = max(self.round, self._in_round)
        if seconds > self.worst:
            self.worst = seconds
            what = getattr(arguments[0], "protocol", arguments[0]) if arguments else call
            self.where = f"{getattr(call, '__qualname__', call)} {what!r:.80}"

    def read(self) -> dict[str, Any]:
        """Return the measurements since the last call."""
        found = {
            "worst": self.worst,
            "where": self.where,
            "round": self.round,
            "total": time.process_time(),
            "collection": self.collection,
            "objects": len(gc.get_objects()) if self.collection else 0,
        }
        self.worst, self.where, self.round, self.collection = 0.0, "", 0.0, 0.0
        return found

    def _collects(self, phase: str, what: dict[str, int]) -> None:
        if what["generation"] < FULL or threading.current_thread() is not threading.main_thread():
            return
        if phase == "start":
            self._began = time.thread_time()
        else:
            seconds = time.thread_time() - self._began
            self._collected += seconds
            self.collection = max(self.collection, seconds)

    def watch(self) -> None:
        """Measure all callbacks of the reactor from now on."""
        gc.callbacks.append(self._collects)
        call_later, from_thread, poll = reactor.callLater, reactor.callFromThread, reactor.doIteration
        reactor._doReadOrWrite = self.measured(reactor._doReadOrWrite)
        reactor.callLater = lambda delay, call, *more, **named: call_later(delay, self.measured(call), *more, **named)
        reactor.callFromThread = lambda call, *more, **named: from_thread(self.measured(call), *more, **named)

        def next_round(delay: float) -> None:
            self._in_round = 0.0
            poll(delay)

        reactor.doIteration = next_round


class Control(LineReceiver):
    """Answers lines of the process's input."""

    delimiter = b"\n"

    def __init__(self, meter: TurnMeter, budgets: list[Budget[Any]]) -> None:
        self._meter = meter
        self._budgets = budgets

    def lineReceived(self, line: bytes) -> None:
        if line.startswith(b"http"):
            fetched = http_get(reactor, PAGE_SECONDS)(line.decode())
            fetched.addBoth(lambda result: self._answer(fetched=f"{result!r:.100}"))
        else:
            self._answer()

    def _answer(self, **more: str) -> None:
        kept = sum(
            one.unsent_bytes + one.incomplete_bytes + one.held_bytes + one.remembered_bytes for one in self._budgets
        )
        self.sendLine(json.dumps({**self._meter.read(), **more, "kept": kept}).encode())

    def connectionLost(self, reason: Any = None) -> None:
        with contextlib.suppress(ReactorNotRunning):
            reactor.stop()


async def serve(store: str, meter: TurnMeter) -> None:
    cluster = EmbeddedCluster(
        reactor, store, broker_port=free_port(), broker_options={**OPTIONS, "metrics_prom_exporter_port": 0}
    )
    await cluster.start()
    broker = cluster.broker
    topic = TopicConfig(topic_name="T", read_queue_nums=QUEUES, write_queue_nums=QUEUES, perm=6)
    broker.controller.topics.update(
        [topic, TopicConfig(topic_name="Small", read_queue_nums=4, write_queue_nums=4, perm=6)]
    )
    for number in range(GROUPS):
        broker.controller.groups.find(f"G{number}" if number else "G")
    console = ConsoleService(ConsoleSettings((cluster.name_server,), port=0), reactor, lambda text: None)
    console.startService()

    def recorder(server: tuple[str, int]) -> ProxyFactory:
        return ProxyFactory(reactor, server, lambda *frame: None, lambda: RouteRewrite(advertised.proxy_of))

    advertised = Advertised(reactor, recorder)
    recording = reactor.listenTCP(0, recorder(("127.0.0.1", broker.port)), interface="127.0.0.1")
    grpc = int(cluster.serve_grpc().rpartition(":")[2])
    ports = {
        "broker": broker.port,
        "name server": cluster.namesrv.port,
        "HA": int(broker.controller.ha.address.rpartition(":")[2]),
        "gRPC": grpc,
        "metrics": broker.metrics_port,
        "console": console.port,
        "recorder": recording.getHost().port,
    }
    GarbageLooks(reactor.seconds).start()
    meter.watch()
    servers: list[RemotingServerFactory] = [cluster.namesrv.factory, *_factories(broker)]
    budgets = list({id(one.traffic.budget): one.traffic.budget for one in servers}.values())
    stdio.StandardIO(Control(meter, [*budgets, broker._ports.grpc.factory.shared.budget]))
    print(json.dumps(ports), flush=True)


def _factories(broker: Any) -> list[RemotingServerFactory]:
    return [one for one in vars(broker).values() if isinstance(one, RemotingServerFactory)]


def main() -> None:
    raise_descriptor_limit()
    follow_monotonic_time(reactor)
    logs.complain_seldom()
    logs.log_to_standard()
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s", force=True
    )
    logging.getLogger(logs.PACKAGE).setLevel(logging.WARNING)
    starting = Deferred.fromCoroutine(serve(sys.argv[1], TurnMeter()))
    starting.addErrback(lambda reason: (reason.printTraceback(sys.stderr), reactor.stop()))
    reactor.run()


if __name__ == "__main__":
    main()
