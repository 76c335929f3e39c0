"""An ordered producer or consumer under load behind the JSON lines of line_peer.py. Run as a process of its own.

The producer sends `KEY NUMBER` to each queue, numbers from 0 without end, and goes on with the first that failed; the
consumer tells what it is handed, with the time of a clock that all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet import defer, reactor, stdio, task
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.protocols.basic import LineOnlyReceiver

from twisted_mq.client import (
    ConsumeOrderlyStatus,
    Message,
    OrderedConsumer,
    OrderedConsumerOptions,
    OrderedOptions,
    OrderedProducer,
    Producer,
    SendResult,
)
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

Record = dict[str, Any]
Send = Callable[[bytes, int], defer.Deferred[SendResult]]
GROUP = "broker-a"
"""Broker of plain messages."""
PAUSE_SECONDS = 0.2
SEND_SECONDS = 90.0
RATED_BODY = b"x" * 128


def settings(arguments: Record) -> CoordinatorSettings:
    address = parse_address(arguments["coordinator"])
    return CoordinatorSettings(address, arguments["session_seconds"], auth=arguments["auth"])


def connect(ports: dict[str, int]) -> Callable[[str, int], TCP4ClientEndpoint]:
    """Endpoints that take other ports where `ports` says so: those of proxies."""
    return lambda host, port: TCP4ClientEndpoint(reactor, host, ports.get(str(port), port), timeout=3.0)


class Program(LineOnlyReceiver):
    """Program whose commands are lines of standard input; an answer is written when its Deferred fires."""

    delimiter = b"\n"

    def __init__(self, finished: defer.Deferred[None]) -> None:
        self._finished = finished
        self._clients: list[Producer | OrderedProducer | OrderedConsumer] = []
        self._loads: list[defer.Deferred[None]] = []
        self._sends = True
        self._rated: dict[str, Send] = {}

    def lineReceived(self, line: bytes) -> None:
        defer.Deferred.fromCoroutine(self._answer(json.loads(line)))

    def connectionLost(self, reason: Any = None) -> None:
        self._finished.callback(None)

    async def stop_all(self) -> None:
        for client in self._clients:
            await client.stop()

    async def _answer(self, request: Record) -> None:
        command: Callable[[Record], Awaitable[Any]] = getattr(self, f"do_{request['do']}")
        try:
            self._write({"id": request["id"], "result": await command(request)})
        except Exception as failure:
            error = {"type": type(failure).__name__, "code": -1, "message": str(failure)}
            self._write({"id": request["id"], "error": error})

    def _write(self, record: Record) -> None:
        """At once: what a process that is killed has committed, it has told."""
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()

    def _event(self, kind: str, name: str, message: Record) -> None:
        self._write({"event": kind, "consumer": name, "message": {**message, "at": time.monotonic()}})

    async def do_send(self, arguments: Record) -> None:
        """Begin to send to all queues, `burst` messages at once, then a pause."""
        send = await self._producer(arguments)
        for queue in range(arguments["queues"]):
            self._loads.append(defer.Deferred.fromCoroutine(self._load(send, arguments, queue)))

    async def do_rate(self, arguments: Record) -> Record:
        """Keep `in_flight` messages on their way to each queue for some seconds; `plain` to a topic that is not ordered.

        How many were acknowledged, in what time, and the seconds that this process had of a processor.
        """
        topic = arguments["topic"]
        send = self._rated[topic] = self._rated.get(topic) or await self._producer(arguments)
        began, used = time.monotonic(), time.process_time()
        until = began + arguments["for_seconds"]
        queues = [queue for queue in range(arguments["queues"]) for _ in range(arguments["in_flight"])]
        slots = [defer.Deferred.fromCoroutine(_one_after_the_other(send, queue, until)) for queue in queues]
        sends: list[int] = await defer.gatherResults(slots)
        return {"sends": sum(sends), "seconds": time.monotonic() - began, "processor": time.process_time() - used}

    async def _producer(self, arguments: Record) -> Send:
        group, name_server, topic = arguments["group"], arguments["name_server"], arguments["topic"]
        if arguments.get("plain"):
            plain = Producer(reactor, group, name_server)
            await plain.start()
            self._clients.append(plain)
            return lambda body, queue: plain.send(Message(topic, body), MessageQueue(topic, GROUP, queue))
        producer = OrderedProducer(
            reactor, group, name_server, coordinator=settings(arguments), connect=connect(arguments["ports"]),
            options=OrderedOptions(stand_by=True, send_timeout_seconds=SEND_SECONDS),
        )  # fmt: skip
        await producer.start()
        self._clients.append(producer)
        return lambda body, queue: producer.send(Message(topic, body), queue)

    async def _load(self, send: Send, arguments: Record, queue: int) -> None:
        name, burst = arguments["name"], arguments["burst"]
        key, number = f"{name}-{queue}", 0
        while self._sends:
            bodies = (f"{key} {number + step}".encode() for step in range(burst))
            results = await defer.DeferredList([send(body, queue) for body in bodies], consumeErrors=True)
            failed = next((result for ok, result in results if not ok), None)
            taken = next((place for place, (ok, _) in enumerate(results) if not ok), burst)
            number += taken
            if taken:
                group = results[taken - 1][1].queue.broker_name
                self._event("sent", name, {"key": key, "queue": queue, "next": number, "group": group})
            if failed is not None:
                self._event("refused", name, {"key": key, "type": failed.type.__name__, "why": str(failed.value)})
            await task.deferLater(reactor, PAUSE_SECONDS if failed is not None else arguments["pause"])

    async def do_finish(self, arguments: Record) -> bool:
        """Send no more, and wait for the acknowledgements of what was sent."""
        self._sends = False
        await defer.DeferredList(self._loads)
        return True

    async def do_consume(self, arguments: Record) -> None:
        """Begin to consume all queues."""
        name = arguments["name"]

        def heard(messages: list[MessageExt], context: object) -> ConsumeOrderlyStatus:
            for message in messages:
                self._event("message", name, {"body": message.body.decode(), "queue": message.queue_id})
            return ConsumeOrderlyStatus.SUCCESS

        consumer = OrderedConsumer(
            reactor, arguments["group"], arguments["name_server"], coordinator=settings(arguments),
            options=OrderedConsumerOptions(consume_message_batch_max_size=8), connect=connect(arguments["ports"]),
        )  # fmt: skip
        consumer.subscribe(arguments["topic"])
        consumer.listen(heard)
        await consumer.start()
        self._clients.append(consumer)


async def _one_after_the_other(send: Send, queue: int, until: float) -> int:
    """Return the number of messages acknowledged by that time."""
    count = 0
    while time.monotonic() < until:
        await send(RATED_BODY, queue)
        count += 1
    return count


async def main(reactor: Any) -> None:
    finished: defer.Deferred[None] = defer.Deferred()
    program = Program(finished)
    stdio.StandardIO(program, stdout=os.open(os.devnull, os.O_WRONLY))
    await finished
    await program.stop_all()


if __name__ == "__main__":
    task.react(lambda reactor: defer.Deferred.fromCoroutine(main(reactor)), argv=sys.argv[1:])
