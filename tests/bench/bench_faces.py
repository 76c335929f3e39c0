"""What the asyncio and the blocking client cost beside that of Deferreds, each in a process of its own, on one broker.

    python -m tests.bench.bench_faces --seconds 3 --rounds 5

A broker in a process, the client in another: sends one after the other, 64 in flight, and a backlog consumed by listener and by
iteration. Rates change with the machine by the minute, so the faces take turns; processor time a message is the client's.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from twisted.internet import defer

from interop.peers.process import free_port
from twisted_mq.client import ConsumeFromWhere, ConsumerOptions, ConsumeStatus, FlowLimits, Message

BODY = bytes(128)
IN_FLIGHT = 64
BACKLOG = 20_000
BATCH = 32
OPTIONS = ConsumerOptions(
    consume_from_where=ConsumeFromWhere.FIRST_OFFSET, flow_limits=FlowLimits(max_count=4000, max_span=100_000)
)
Measured = tuple[int, Callable[[], None]]


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Measure:
    """Rate and processor time from the first message on."""

    def __init__(self) -> None:
        self.count = 0
        self.began = self.used = 0.0

    def begin(self) -> None:
        self.began, self.used = time.monotonic(), spent()

    def result(self) -> dict[str, float]:
        seconds, used = time.monotonic() - self.began, spent() - self.used
        return {"rate": self.count / seconds, "cpu_us": used / self.count * 1e6}


# Deferreds


async def deferred_send(reactor: Any, namesrv: str, topic: str, seconds: float, senders: int) -> Measure:
    from twisted_mq.client import Producer

    producer = Producer(reactor, "g", namesrv)
    await producer.start()
    await producer.send(Message(topic, BODY))
    measure = Measure()
    measure.begin()
    end = measure.began + seconds

    async def sender() -> None:
        while time.monotonic() < end:
            await producer.send(Message(topic, BODY))
            measure.count += 1

    await defer.gatherResults([defer.Deferred.fromCoroutine(sender()) for _ in range(senders)])
    counted = measure.result()
    await producer.stop()
    return counted  # type: ignore[return-value]


async def deferred_listen(reactor: Any, namesrv: str, topic: str, group: str) -> Any:
    from twisted_mq.client import PushConsumer

    measure, done = Measure(), defer.Deferred()

    def on_messages(messages: Any, context: Any) -> ConsumeStatus:
        if not measure.count:
            measure.begin()
        measure.count += 1
        if measure.count == BACKLOG:
            done.callback(measure.result())
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = PushConsumer(reactor, group, namesrv, listener=on_messages, options=OPTIONS)
    consumer.subscribe(topic)
    await consumer.start()
    counted = await done
    await consumer.stop()
    return counted


def deferred(load: str, namesrv: str, topic: str, seconds: float, group: str) -> Any:
    from twisted.internet import reactor

    from twisted_mq.cli.run import run_under_reactor

    if load.startswith("listen"):
        return run_under_reactor(lambda reactor: deferred_listen(reactor, namesrv, topic, group))
    senders = 1 if load == "one" else IN_FLIGHT
    assert reactor is not None
    return run_under_reactor(lambda reactor: deferred_send(reactor, namesrv, topic, seconds, senders))


# asyncio


async def aio_send(namesrv: str, topic: str, seconds: float, senders: int) -> Any:
    from twisted_mq.aio import Producer

    async with Producer(namesrv, group="g") as producer:
        await producer.send(Message(topic, BODY))
        measure = Measure()
        measure.begin()
        end = measure.began + seconds

        async def sender() -> None:
            while time.monotonic() < end:
                await producer.send(Message(topic, BODY))
                measure.count += 1

        await asyncio.gather(*(sender() for _ in range(senders)))
        return measure.result()


async def aio_listen(namesrv: str, topic: str, group: str) -> Any:
    from twisted_mq.aio import PushConsumer

    measure, done = Measure(), asyncio.get_running_loop().create_future()

    def on_messages(messages: Any, context: Any) -> ConsumeStatus:
        if not measure.count:
            measure.begin()
        measure.count += 1
        if measure.count == BACKLOG:
            done.set_result(measure.result())
        return ConsumeStatus.CONSUME_SUCCESS

    topics = {topic: "*"}
    async with PushConsumer(namesrv, group=group, topics=topics, listener=on_messages, options=OPTIONS):
        return await done


async def aio_iterate(namesrv: str, topic: str, group: str) -> Any:
    from twisted_mq.aio import PushConsumer

    measure = Measure()
    async with PushConsumer(namesrv, group=group, topics={topic: "*"}, options=OPTIONS) as consumer:
        async for message in consumer:
            if not measure.count:
                measure.begin()
            measure.count += 1
            await message.ack()
            if measure.count == BACKLOG:
                return measure.result()


def aio(load: str, namesrv: str, topic: str, seconds: float, group: str, run: Any = asyncio.run) -> Any:
    if load == "listen":
        return run(aio_listen(namesrv, topic, group))
    if load == "iterate":
        return run(aio_iterate(namesrv, topic, group))
    return run(aio_send(namesrv, topic, seconds, 1 if load == "one" else IN_FLIGHT))


def uvloop(load: str, namesrv: str, topic: str, seconds: float, group: str) -> Any:
    import uvloop

    return aio(load, namesrv, topic, seconds, group, uvloop.run)


# plain calls


def blocking(load: str, namesrv: str, topic: str, seconds: float, group: str) -> Any:
    from twisted_mq.blocking import Producer, PushConsumer

    measure = Measure()
    if load in ("one", "many"):
        counts = []
        with Producer(namesrv, group="g") as producer:
            producer.send(Message(topic, BODY))
            measure.begin()
            end = measure.began + seconds

            def sender() -> None:
                for count in itertools.count():
                    if time.monotonic() >= end:
                        counts.append(count)
                        return
                    producer.send(Message(topic, BODY))

            threads = [threading.Thread(target=sender) for _ in range(1 if load == "one" else IN_FLIGHT)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            measure.count = sum(counts)
            return measure.result()
    with PushConsumer(namesrv, group=group, topics={topic: "*"}, options=OPTIONS) as consumer:
        for message in consumer:
            if not measure.count:
                measure.begin()
            measure.count += 1
            message.ack()
            if measure.count == BACKLOG:
                return measure.result()


FACES = {"deferred": deferred, "aio": aio, "uvloop": uvloop, "blocking": blocking}
LOADS = {
    "one": ("deferred", "aio", "uvloop", "blocking"),
    "many": ("deferred", "aio", "uvloop", "blocking"),
    "listen": ("deferred", "aio", "uvloop"),
    "iterate": ("aio", "uvloop", "blocking"),
}
TITLES = {
    "one": "sends a second, one after the other",
    "many": f"sends a second, {IN_FLIGHT} in flight",
    "listen": "messages a second to a listener",
    "iterate": "messages a second by iteration",
}


def measured(face: str, load: str, *arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_faces", "--face", face, "--load", load, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    return found


def fill(namesrv: str, topic: str) -> None:
    from twisted_mq.blocking import Producer

    with Producer(namesrv, group="fill") as producer:
        for _ in range(BACKLOG // BATCH):
            producer.send_batch([Message(topic, BODY)] * BATCH)


def compare(rounds: int, seconds: float) -> None:
    port, broker = free_port(), free_port()
    command = ["mq", "up", "--temporary", "--namesrv-port", str(port), "--port", str(broker)]
    with subprocess.Popen(
        [f"{sys.prefix}/bin/{command[0]}", *command[1:]], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        while "Ctrl-C" not in server.stdout.readline():
            pass
        namesrv, groups = f"127.0.0.1:{port}", itertools.count()
        fill(namesrv, "Backlog")
        try:
            for load, faces in LOADS.items():
                results: dict[str, list[dict[str, float]]] = {face: [] for face in faces}
                topic = "Backlog" if load in ("listen", "iterate") else "Sent"
                for _ in range(rounds):
                    for face in faces:
                        arguments = ("--namesrv", namesrv, "--topic", topic, "--group", f"g-{next(groups)}")
                        results[face].append(measured(face, load, *arguments, "--seconds", str(seconds)))
                report(load, results)
        finally:
            server.terminate()


def report(load: str, results: dict[str, list[dict[str, float]]]) -> None:
    print(TITLES[load])
    first = next(iter(results))
    for face, rounds in results.items():
        rate = statistics.median(one["rate"] for one in rounds)
        ratio = statistics.median(
            one["rate"] / other["rate"] for one, other in zip(rounds, results[first], strict=True)
        )
        cpu = statistics.median(one["cpu_us"] for one in rounds)
        print(
            f"  {face:10} {rate:10,.0f}   {ratio:5.2f} of {first}   {cpu:7.1f} us of the client's processor", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--face", choices=FACES)
    parser.add_argument("--load", choices=LOADS)
    for name in ("--namesrv", "--topic", "--group"):
        parser.add_argument(name, default="")
    given = parser.parse_args()
    if given.face is None:
        compare(given.rounds, given.seconds)
    else:
        face = FACES[given.face]
        print(json.dumps(face(given.load, given.namesrv, given.topic, given.seconds, given.group)))


if __name__ == "__main__":
    main()
