"""Load of one face during restarts: `python -m interop.peers.rolling_load FACE NAMESRV TOPIC DIRECTORY [SECONDS]`.

Sends and consumes until DIRECTORY/stop is there and everything sent has come; DIRECTORY/consumes is there once the first message
came. Then it prints one JSON object: the number of successful sends, the errors of the others, and the number of missing
messages. The clients look for routes each SECONDS, 30 by default.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import defer, task

from twisted_mq import aio, blocking, client
from twisted_mq.client import ClientOptions, ConsumeFromWhere, ConsumerOptions, ConsumeStatus, ProducerOptions

SENDERS = 4
PAUSE_SECONDS = 0.01
DRAIN_SECONDS = 60.0
PRODUCING = ProducerOptions(send_timeout_seconds=60)
CONSUMING = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)


@attrs.define
class Load:
    """Sent and received messages of one process. The first sender sends by key, so that its messages have one queue."""

    topic: str
    stop: Path
    client: ClientOptions = attrs.Factory(ClientOptions)
    sent: set[bytes] = attrs.Factory(set)
    seen: set[bytes] = attrs.Factory(set)
    failed: Counter[str] = attrs.Factory(Counter)

    def message(self, sender: int, number: int) -> client.Message:
        return client.Message(self.topic, b"%d-%d" % (sender, number))

    def runs(self) -> bool:
        return not self.stop.exists()

    def took(self, messages: list[Any], _: object = None) -> ConsumeStatus:
        if not self.seen:
            self.stop.with_name("consumes").touch()
        self.seen.update(one.body for one in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    def drained(self, began: float) -> bool:
        return self.sent <= self.seen or time.monotonic() - began > DRAIN_SECONDS

    def result(self) -> str:
        missing = sorted(one.decode() for one in self.sent - self.seen)
        return json.dumps({"sent": len(self.sent), "failed": self.failed, "missing": missing})


async def _send_all(load: Load, producer: Any, sender: int, sleep: Any) -> None:
    """Send with one of the two awaited faces."""
    number = 0
    while load.runs():
        message = load.message(sender, number)
        try:
            await (producer.send(message) if sender else producer.send_by_key(message, "key"))
            load.sent.add(message.body)
        except client.RocketMQError as error:
            load.failed[f"{type(error).__name__}: {error}"] += 1
        number += 1
        await sleep(PAUSE_SECONDS)


async def _drain(load: Load, sleep: Any) -> None:
    began = time.monotonic()
    while not load.drained(began):
        await sleep(PAUSE_SECONDS)


def deferreds(load: Load, namesrv: str) -> None:
    async def main(reactor: Any) -> None:
        def sleep(seconds: float) -> defer.Deferred[None]:
            return task.deferLater(reactor, seconds)

        producer = client.Producer(reactor, "rolling", namesrv, options=PRODUCING, client_options=load.client)
        consumer = client.PushConsumer(
            reactor, load.topic, namesrv, listener=load.took, options=CONSUMING, client_options=load.client
        )
        consumer.subscribe(load.topic)
        await producer.start()
        await consumer.start()
        sending = [_send_all(load, producer, sender, sleep) for sender in range(SENDERS)]
        await defer.gatherResults([defer.Deferred.fromCoroutine(one) for one in sending])
        await _drain(load, sleep)
        await consumer.stop()
        await producer.stop()

    try:
        task.react(lambda reactor: defer.Deferred.fromCoroutine(main(reactor)))
    except SystemExit as ended:
        if ended.code:
            raise


def asyncio_tasks(load: Load, namesrv: str) -> None:
    async def main() -> None:
        common: dict[str, Any] = {"client_options": load.client}
        async with aio.Producer(namesrv, group="rolling", options=PRODUCING, **common) as producer:
            topics = {load.topic: "*"}
            async with aio.PushConsumer(
                namesrv, group=load.topic, topics=topics, listener=load.took, options=CONSUMING, **common
            ):
                await asyncio.gather(*(_send_all(load, producer, one, asyncio.sleep) for one in range(SENDERS)))
                await _drain(load, asyncio.sleep)

    asyncio.run(main())


def plain_calls(load: Load, namesrv: str) -> None:
    def send_all(producer: blocking.Producer, sender: int) -> None:
        number = 0
        while load.runs():
            message = load.message(sender, number)
            try:
                if sender:
                    producer.send(message)
                else:
                    producer.send_by_key(message, "key")
                load.sent.add(message.body)
            except client.RocketMQError as error:
                load.failed[f"{type(error).__name__}: {error}"] += 1
            number += 1
            time.sleep(PAUSE_SECONDS)

    topics = {load.topic: "*"}
    common: dict[str, Any] = {"client_options": load.client}
    with (
        blocking.Producer(namesrv, group="rolling", options=PRODUCING, **common) as producer,
        blocking.PushConsumer(
            namesrv, group=load.topic, topics=topics, listener=load.took, options=CONSUMING, **common
        ),
    ):
        threads = [threading.Thread(target=send_all, args=(producer, one)) for one in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        began = time.monotonic()
        while not load.drained(began):
            time.sleep(PAUSE_SECONDS)


FACES = {"deferred": deferreds, "asyncio": asyncio_tasks, "blocking": plain_calls}


def main(face: str, namesrv: str, topic: str, directory: str, look_seconds: str = "30") -> None:
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    load = Load(topic, Path(directory) / "stop", ClientOptions(poll_name_server_seconds=float(look_seconds)))
    FACES[face](load, namesrv)
    print(load.result(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
