"""The server of the gRPC port beside grpcio's asyncio server: calls a second, processor time a call.

.venv/bin/python -m tests.bench.bench_grpc_servers [--seconds 4] [--in-flight 1,32]

Each server is a process of its own. Bare ones answer a SendMessage of 128 bytes at once. The others have the same broker behind
them, in memory, and the same handlers: grpcio's runs on the asyncio loop of Twisted's reactor. The client is grpcio's, one
connection in this process. Servers are called in turn, some rounds each, and the medians are printed.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import grpc

from tests.support.grpc_client import message
from twisted_mq.proxy import messages as v2

ROUNDS = 5
WARM_UP_CALLS = 2000
TICKS_A_SECOND = 100
PATH = f"/{v2.SERVICE}/SendMessage"
TOPIC = "Bench"
METADATA = [("x-mq-client-id", "bench@1@0@abcdef"), ("x-mq-language", "PYTHON")]


def served(address: str) -> None:
    """Tell the parent where this process serves."""
    print(address, flush=True)


def answer_at_once() -> Any:
    """Return what the bare servers answer."""
    entry = {"status": {"code": 20000, "message": "OK"}, "message_id": f"01{7:032X}", "offset": 7}
    return v2.SendMessageResponse(status={"code": 20000, "message": "OK"}, entries=[entry])


def own_bare() -> None:
    """Serve by this project's server alone."""
    from twisted.internet import reactor

    from twisted_mq.proxy.grpc.calls import Method
    from twisted_mq.proxy.grpc.server import GrpcServerFactory
    from twisted_mq.proxy.grpc.shared import Shared

    answer = answer_at_once()
    methods = {PATH: Method(v2.SendMessageRequest, lambda call, request: answer)}
    port = reactor.listenTCP(0, GrpcServerFactory(Shared(methods, reactor)), interface="127.0.0.1")  # type: ignore[attr-defined]
    served(f"127.0.0.1:{port.getHost().port}")
    reactor.run()  # type: ignore[attr-defined]


def own_broker() -> None:
    """Serve a broker in memory."""
    from twisted.internet import reactor

    _with_broker(reactor, lambda cluster: served(cluster.serve_grpc()))
    reactor.run()  # type: ignore[attr-defined]


def grpcio_bare() -> None:
    """Serve by grpcio's asyncio server alone."""
    import asyncio

    answer = answer_at_once()

    async def handler(request: Any, context: Any) -> Any:
        return answer

    async def run() -> None:
        await (await _grpcio_server(handler)).wait_for_termination()

    asyncio.run(run())


def grpcio_broker() -> None:
    """Serve the handlers of the gRPC port by grpcio, on the asyncio loop of Twisted's reactor."""
    import asyncio

    from twisted.internet import asyncioreactor, defer

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    asyncioreactor.install(loop)
    from twisted.internet import reactor

    from twisted_mq.proxy.grpc.calls import Call
    from twisted_mq.proxy.grpc.metadata import CallHead, Metadata

    running: list[Any] = []

    def begin(cluster: Any) -> None:
        cluster.serve_grpc()
        method = cluster.broker._ports.grpc.messaging.methods()[PATH]

        async def handler(request: Any, context: Any) -> Any:
            given = {name.encode(): value.encode() for name, value in context.invocation_metadata()}
            head = CallHead(PATH, context.time_remaining(), "identity", Metadata(given))
            call = Call(1, head, ("127.0.0.1", 1), reactor, None, None)  # type: ignore[arg-type]
            return await defer.ensureDeferred(method.handler(call, request)).asFuture(loop)

        running.append(loop.create_task(_grpcio_server(handler)))

    _with_broker(reactor, begin)
    reactor.run()  # type: ignore[attr-defined]


async def _grpcio_server(handler: Callable[..., Any]) -> Any:
    from grpc import aio

    server = aio.server()
    unary = grpc.unary_unary_rpc_method_handler(
        handler, v2.SendMessageRequest.FromString, v2.SendMessageResponse.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(v2.SERVICE, {"SendMessage": unary}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    served(f"127.0.0.1:{port}")
    return server


def _with_broker(reactor: Any, begin: Callable[[Any], object]) -> None:
    """Start a broker with a topic on a reactor that will run."""
    from twisted.internet.defer import Deferred

    from twisted_mq.protocol.bodies import TopicConfig
    from twisted_mq.testing import EmbeddedCluster

    async def start() -> None:
        cluster = await EmbeddedCluster(reactor, in_memory=True).start()
        cluster.broker.controller.topics.update([TopicConfig(TOPIC, 4, 4)])
        begin(cluster)

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(start()))


SERVERS: dict[str, Callable[[], None]] = {
    "own bare": own_bare,
    "grpcio asyncio bare": grpcio_bare,
    "own with broker": own_broker,
    "grpcio asyncio with broker": grpcio_broker,
}


class Server:
    """A server process, and a client of it."""

    def __init__(self, kind: str) -> None:
        command = [sys.executable, "-m", "tests.bench.bench_grpc_servers", "--serve", kind]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        self.pid = self._process.pid
        self._channel = grpc.insecure_channel(self.address)
        self._send = self._channel.unary_unary(
            PATH, v2.SendMessageRequest.SerializeToString, v2.SendMessageResponse.FromString
        )
        self._requests = itertools.cycle(
            [v2.SendMessageRequest(messages=[message(TOPIC, b"x" * 128)]) for _ in range(100)]
        )

    def stop(self) -> None:
        self._channel.close()
        self._process.terminate()
        self._process.wait(20)

    def send(self, request: Any) -> None:
        """Send, and wait for the answer."""
        answer = self._send(request, timeout=20, metadata=METADATA)
        if answer.status.code != v2.Code.OK:
            sys.exit(f"a call failed: {answer.status.message}")

    def calls(self, in_flight: int, *, most: int | None = None, seconds: float = 60.0) -> tuple[int, float, float]:
        """Call for a while. Return how many calls ended, in how many seconds, and the server's processor seconds."""
        waiting: collections.deque[Any] = collections.deque()
        began, spent, count = time.monotonic(), self._spent(), 0
        while (most is None or count < most) and time.monotonic() - began < seconds:
            while len(waiting) < in_flight:
                waiting.append(self._send.future(next(self._requests), timeout=20, metadata=METADATA))
            answer = waiting.popleft().result()
            if answer.status.code != v2.Code.OK:
                sys.exit(f"a call failed: {answer.status.message}")
            count += 1
        for one in waiting:
            one.result()
        return count + len(waiting), time.monotonic() - began, self._spent() - spent

    def _spent(self) -> float:
        with open(f"/proc/{self._process.pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS_A_SECOND


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--in-flight", type=lambda text: [int(one) for one in text.split(",")], default=[1, 32])
    parser.add_argument("--serve", choices=SERVERS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        SERVERS[arguments.serve]()
        return
    servers = {kind: Server(kind) for kind in SERVERS}
    rows: dict[tuple[str, int], list[tuple[float, float]]] = {}
    try:
        for server in servers.values():
            server.calls(32, most=WARM_UP_CALLS)
        for _ in range(ROUNDS):
            for in_flight in arguments.in_flight:
                for kind, server in servers.items():
                    count, seconds, spent = server.calls(in_flight, seconds=arguments.seconds / ROUNDS)
                    rows.setdefault((kind, in_flight), []).append((count / seconds, spent / count * 1e6))
    finally:
        for server in servers.values():
            server.stop()
    print(f"{'server':28}{'in flight':>10}{'calls/s':>10}{'us a call':>11}")
    for (kind, in_flight), found in sorted(rows.items(), key=lambda row: row[0][1]):
        rate, cost = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{kind:28}{in_flight:10}{rate:10,.0f}{cost:11,.0f}")


if __name__ == "__main__":
    main()
