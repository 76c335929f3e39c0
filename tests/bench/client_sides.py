"""Runs one client under load in a process of its own: reads lines `LOAD TOPIC GROUP SECONDS COUNT`, answers each with JSON.

    python -m tests.bench.client_sides FACE NAMESRV

FACE is a face of this project's client, or `cpp`: Apache's C++ client by its wheel. An answer has messages a second and the
processor time of this process a message, from the first message on.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import attrs
from twisted.internet import defer

from twisted_mq.client import ConsumeFromWhere, ConsumerOptions, ConsumeStatus, Message, ProducerOptions, SendStatus

BODY = b"x" * 128
BATCH = 32
SENDERS = {"one": 1, "many": 64, "window": 1000, "batch": 4}
"""Load -> how many send at the same time, each one after the other."""
OPTIONS = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, consume_message_batch_max_size=BATCH)
SENDING = ProducerOptions(send_timeout_seconds=10.0)
"""Long, so that no client fails on a busy machine."""
PATIENCE_SECONDS = 30.0
"""The longest time of a backlog."""


@attrs.frozen
class Task:
    """A line that asks for a load; `seconds` are for sends, `count` for a backlog."""

    load: str
    topic: str
    group: str
    seconds: float
    count: int

    @classmethod
    def of(cls, line: str) -> Task:
        load, topic, group, seconds, count = line.split()
        return cls(load, topic, group, float(seconds), int(count))


class Measure:
    """Rate and processor time from the first message on."""

    def __init__(self) -> None:
        self.count = 0
        self.began = self.used = 0.0

    def begin(self) -> None:
        self.began, self.used = time.monotonic(), spent()

    def took(self, count: int) -> None:
        """So many of a backlog; the clock starts with the first, which does not count."""
        if self.began:
            self.count += count
        else:
            self.begin()

    def result(self) -> dict[str, float]:
        seconds, used = time.monotonic() - self.began, spent() - self.used
        return {"rate": self.count / seconds, "cpu_us": used / self.count * 1e6}


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def answer(task: Callable[[], dict[str, float]]) -> None:
    """Print what a task comes to."""
    try:
        found: dict[str, Any] = task()
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(found), flush=True)


def batch(topic: str) -> list[Message]:
    return [Message(topic, BODY) for _ in range(BATCH)]


async def send_until(end: float, producer: Any, task: Task, measure: Measure) -> None:
    """Run one sender, of either kind of awaitable."""
    if task.load == "batch":
        while time.monotonic() < end:
            await producer.send_batch(batch(task.topic))
            measure.count += BATCH
        return
    while time.monotonic() < end:
        await producer.send(Message(task.topic, BODY))
        measure.count += 1


class Taken:
    """A listener that counts; `done` is called when it has had all."""

    def __init__(self, count: int, done: Callable[[], object]) -> None:
        self.measure = Measure()
        self._left = count
        self._done = done

    def __call__(self, messages: list[Any], context: Any) -> ConsumeStatus:
        self.measure.took(len(messages))
        self._left -= len(messages)
        if self._left <= 0 < self._left + len(messages):
            self._done()
        return ConsumeStatus.CONSUME_SUCCESS


# Deferreds


async def deferred_send(reactor: Any, namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.client import Producer

    producer = Producer(reactor, task.group, namesrv, options=SENDING)
    await producer.start()
    await producer.send(Message(task.topic, BODY))
    measure = Measure()
    measure.begin()
    senders = [send_until(measure.began + task.seconds, producer, task, measure) for _ in range(SENDERS[task.load])]
    await defer.gatherResults([defer.Deferred.fromCoroutine(one) for one in senders])
    found = measure.result()
    await producer.stop()
    return found


async def deferred_listen(reactor: Any, namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.client import PushConsumer

    done: defer.Deferred[None] = defer.Deferred()
    results: list[dict[str, float]] = []

    def ended() -> None:
        results.append(taken.measure.result())
        done.callback(None)

    taken = Taken(task.count, ended)
    consumer = PushConsumer(reactor, task.group, namesrv, listener=taken, options=OPTIONS)
    consumer.subscribe(task.topic)
    await consumer.start()
    await done.addTimeout(PATIENCE_SECONDS, reactor)
    await consumer.stop()
    return results[0]


def deferred(namesrv: str) -> None:
    from twisted.internet import reactor, threads

    own: Any = reactor

    def run(task: Task) -> dict[str, float]:
        work = deferred_listen if task.load == "listen" else deferred_send
        found = threads.blockingCallFromThread(own, lambda: defer.Deferred.fromCoroutine(work(own, namesrv, task)))
        return cast(dict[str, float], found)

    def read() -> None:
        serve(run)
        own.callFromThread(own.stop)

    own.callInThread(read)
    own.run()


# asyncio


async def aio_send(namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.aio import Producer

    async with Producer(namesrv, group=task.group, options=SENDING) as producer:
        await producer.send(Message(task.topic, BODY))
        measure = Measure()
        measure.begin()
        end = measure.began + task.seconds
        await asyncio.gather(*(send_until(end, producer, task, measure) for _ in range(SENDERS[task.load])))
        return measure.result()


async def aio_listen(namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.aio import PushConsumer

    done: asyncio.Future[dict[str, float]] = asyncio.get_running_loop().create_future()
    taken = Taken(task.count, lambda: done.set_result(taken.measure.result()))
    topics = {task.topic: "*"}
    async with PushConsumer(namesrv, group=task.group, topics=topics, listener=taken, options=OPTIONS):
        return await asyncio.wait_for(done, PATIENCE_SECONDS)


async def aio_iterate(namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.aio import PushConsumer

    measure = Measure()
    async with PushConsumer(namesrv, group=task.group, topics={task.topic: "*"}, options=OPTIONS) as consumer:
        async for message in consumer.messages(timeout=PATIENCE_SECONDS):
            measure.took(1)
            await message.ack()
            if measure.count == task.count - 1:
                return measure.result()
    raise TimeoutError(f"{measure.count} of {task.count} messages")


ASYNCIO = {"listen": aio_listen, "iterate": aio_iterate}


def aio(namesrv: str, run: Callable[..., Any] = asyncio.run) -> None:
    serve(lambda task: cast(dict[str, float], run(ASYNCIO.get(task.load, aio_send)(namesrv, task))))


def uvloop(namesrv: str) -> None:
    import uvloop as loops

    aio(namesrv, loops.run)


# plain calls, here and in C++


def in_threads(count: int, work: Callable[[], int]) -> Measure:
    """Return what a number of threads sent together."""
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(work())) for _ in range(count)]
    measure = Measure()
    measure.begin()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    measure.count = sum(counts)
    return measure


def repeated(seconds: float, send: Callable[[], int]) -> Callable[[], int]:
    def work() -> int:
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            count += send()
        return count

    return work


def blocking_send(namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.blocking import Producer

    with Producer(namesrv, group=task.group, options=SENDING) as producer:

        def send() -> int:
            producer.send(Message(task.topic, BODY))
            return 1

        def send_batch() -> int:
            producer.send_batch(batch(task.topic))
            return BATCH

        send()
        work = send_batch if task.load == "batch" else send
        return in_threads(SENDERS[task.load], repeated(task.seconds, work)).result()


def send_by_futures(namesrv: str, task: Task) -> dict[str, float]:
    """Run one thread, which waits for the oldest of its sends."""
    from twisted_mq.blocking import Producer

    sent: collections.deque[Any] = collections.deque()
    with Producer(namesrv, group=task.group, options=SENDING) as producer:
        producer.send(Message(task.topic, BODY))
        measure = Measure()
        measure.begin()
        while time.monotonic() < measure.began + task.seconds:
            if len(sent) == SENDERS[task.load]:
                sent.popleft().result()
                measure.count += 1
            sent.append(producer.send_async(Message(task.topic, BODY)))
        measure.count += sum(one.result().status is SendStatus.SEND_OK for one in sent)
        return measure.result()


def blocking_consume(namesrv: str, task: Task) -> dict[str, float]:
    from twisted_mq.blocking import PushConsumer

    done = threading.Event()
    topics = {task.topic: "*"}
    if task.load == "listen":
        results: list[dict[str, float]] = []
        lock = threading.Lock()
        taken = Taken(task.count, lambda: (results.append(taken.measure.result()), done.set()))

        def listener(messages: list[Any], context: Any) -> ConsumeStatus:
            with lock:
                return taken(messages, context)

        with PushConsumer(namesrv, group=task.group, topics=topics, listener=listener, options=OPTIONS):
            if not done.wait(PATIENCE_SECONDS):
                raise TimeoutError(f"{taken.measure.count} of {task.count} messages")
            return results[0]
    measure = Measure()
    with PushConsumer(namesrv, group=task.group, topics=topics, options=OPTIONS) as consumer:
        for message in consumer.messages(timeout=PATIENCE_SECONDS):
            measure.took(1)
            message.ack()
            if measure.count == task.count - 1:
                return measure.result()
    raise TimeoutError(f"{measure.count} of {task.count} messages")


def blocking(namesrv: str) -> None:
    serve(lambda task: (blocking_send if task.load in SENDERS else blocking_consume)(namesrv, task))


def futures(namesrv: str) -> None:
    serve(lambda task: send_by_futures(namesrv, task))


def cpp(namesrv: str) -> None:
    import rocketmq.client as wheel

    numbers = itertools.count()

    def message(topic: str) -> Any:
        made = wheel.Message(topic)
        made.set_body(BODY)
        return made

    def asynchronously(producer: Any, task: Task) -> dict[str, float]:
        window = threading.Semaphore(SENDERS["window"])
        measure = Measure()
        lock = threading.Lock()

        def sent(_: Any) -> None:
            with lock:
                measure.count += 1
            window.release()

        measure.begin()
        while time.monotonic() < measure.began + task.seconds:
            window.acquire()
            producer.send_async(message(task.topic), sent, lambda _: window.release())
        for _ in range(SENDERS["window"]):
            window.acquire(timeout=PATIENCE_SECONDS)
        return measure.result()

    def send(task: Task) -> dict[str, float]:
        producer = wheel.Producer(task.group, timeout=int(SENDING.send_timeout_seconds * 1000))
        producer.set_namesrv_addr(namesrv)
        producer.start()

        def one() -> int:
            producer.send_sync(message(task.topic))
            return 1

        def together() -> int:
            producer.send_batch([message(task.topic) for _ in range(BATCH)])
            return BATCH

        try:
            one()
            if task.load == "window":
                return asynchronously(producer, task)
            work = together if task.load == "batch" else one
            return in_threads(SENDERS[task.load], repeated(task.seconds, work)).result()
        finally:
            producer.shutdown()

    def listen(task: Task) -> dict[str, float]:
        done, lock, measure = threading.Event(), threading.Lock(), Measure()
        results: list[dict[str, float]] = []

        def on_message(message: Any) -> None:
            with lock:
                measure.took(1)
                if measure.count == task.count - 1:
                    results.append(measure.result())
                    done.set()

        consumer = wheel.PushConsumer(task.group)
        consumer.set_namesrv_addr(namesrv)
        consumer.set_instance_name(f"bench-{next(numbers)}")
        consumer.subscribe(task.topic, on_message)
        consumer.start()
        try:
            if not done.wait(PATIENCE_SECONDS):
                raise TimeoutError(f"{measure.count} of {task.count} messages")
            return results[0]
        finally:
            consumer.shutdown()

    serve(lambda task: listen(task) if task.load == "listen" else send(task))


def serve(run: Callable[[Task], dict[str, float]]) -> None:
    """Do what the lines say until there are no more."""
    for line in sys.stdin:
        answer(lambda line=line: run(Task.of(line)))  # type: ignore[misc]


FACES = {"deferred": deferred, "aio": aio, "uvloop": uvloop, "blocking": blocking, "futures": futures, "cpp": cpp}


if __name__ == "__main__":
    FACES[sys.argv[1]](sys.argv[2])
