"""Measures one message in the broker's process, without sockets: frames in, frames out, over a store in a temporary folder.

.venv/bin/python -m tests.bench.bench_broker [--messages 200000] [--dir /dev/shm] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twisted.internet.task import Clock

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.controller import BrokerController
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterTable
from twisted_mq.broker.filter.consumer_filter_manager import consumer_filters
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.request_table import served_requests
from twisted_mq.broker.tables import BrokerTables
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.layouts.host import pack_ip
from twisted_mq.protocol.layouts.message_id import UniqueKeyMaker
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable, SubscriptionGroupTable, TopicTable

FRAMES_A_READ = 32
BORN_MS, SENDS_A_MS = 1_795_217_217_000, 100
"""The time of the first send, and how many a producer makes in a millisecond."""


class Sink:
    """A transport that counts what is written."""

    def __init__(self) -> None:
        self.written = 0

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Nothing is ever paused."""

    def getPeer(self) -> object:
        return type("Peer", (), {"host": "127.0.0.1", "port": 50000})()


def now_ms() -> int:
    return int(time.time() * 1000)


def make_broker(
    folder: str, clock: Clock | None = None, now_ms: Callable[[], int] = now_ms, **config_of_store: Any
) -> BrokerController:
    """A broker's controller over an empty store in that folder."""
    options = BrokerOptions(broker_name="bench", store_path_root_dir=folder)
    store = FileMessageStore(StoreConfig(store_path_root_dir=folder, **config_of_store), now_ms)
    store.start()
    config = os.path.join(folder, "config")
    topic_table = TopicTable(os.path.join(config, "topics.json"))
    group_table = SubscriptionGroupTable(os.path.join(config, "subscriptionGroup.json"))
    offset_table = ConsumerOffsetTable(os.path.join(config, "consumerOffset.json"))
    topics = TopicConfigManager(topic_table, now_ms, lambda changed: None, topic_table.save)
    groups = SubscriptionGroupManager(group_table, now_ms, group_table.save, auto_create=True)
    offsets = ConsumerOffsetManager(offset_table, offset_table.save, store.max_offset_in_queue)
    topics.add_startup_topics(options)
    return BrokerController(
        options=options,
        clock=clock or Clock(),
        call_from_thread=lambda call, *args: call(*args),
        now_ms=now_ms,
        store=store,
        topics=topics,
        groups=groups,
        offsets=offsets,
        filters=consumer_filters(options, ConsumerFilterTable(os.path.join(config, "consumerFilter.json"))),
        tables=BrokerTables.load(config),
        advertised_ip="127.0.0.1",
        port=10911,
        unique_keys=UniqueKeyMaker(pack_ip("127.0.0.1"), 1, now_ms),
    )


def send_fields(number: int, tags: str = "", asked: str = "", **more: str) -> dict[str, str]:
    """A send header as Apache's 5.3.3 client fills it."""
    properties = f"UNIQ_KEY\x01C0000202201A4E0E2F2A66E0{number:08X}\x02WAIT\x01true\x02"
    if tags:
        properties += f"TAGS\x01{tags}\x02"
    properties += asked
    born = str(BORN_MS + number // SENDS_A_MS)
    return {"a": "bench_producer", "b": "Bench", "c": "TBW102", "d": "4", "e": str(number % 4), "f": "0", "g": born,
            "h": "0", "i": properties, "j": "0", "k": "false", "m": "false", "n": "bench", **more}  # fmt: skip


def pull_fields(queue_id: int, offset: int, **more: str) -> dict[str, str]:
    """A pull header for 32 messages as Apache's 5.3.3 client fills it."""
    return {"queueId": str(queue_id), "maxMsgBytes": "262144", "maxMsgNums": "32", "sysFlag": "6",
            "suspendTimeoutMillis": "15000", "commitOffset": "0", "bname": "bench", "topic": "Bench",
            "queueOffset": str(offset), "subscription": "*", "expressionType": "TAG", "subVersion": "0",
            "consumerGroup": "bench_consumer", **more}  # fmt: skip


def sends(
    count: int,
    serialize_type: int,
    tags: Sequence[str] = ("",),
    body_lengths: Sequence[int] = (128,),
    topics: Sequence[str] = ("Bench",),
    asked: str = "",
) -> Iterator[bytes]:
    """Sends to four queues in turn. In each queue the messages have these tags in turn. So have their bodies the lengths, and
    so have the topics their turns. `asked` are more properties of each.
    """
    for number in range(count):
        fields = send_fields(number, tags[number // 4 % len(tags)], asked, b=topics[number % len(topics)])
        body = b"x" * body_lengths[number % len(body_lengths)]
        yield encode_frame(RemotingCommand(310, number, 0, "JAVA", 479, None, body, serialize_type, ext_fields=fields))


def batches(count: int, size: int = 32, body_lengths: Sequence[int] = (128,)) -> Iterator[bytes]:
    """Sends of `size` messages, whose bodies take turns at these lengths."""
    messages = [
        Message(
            "Bench",
            b"x" * body_lengths[n % len(body_lengths)],
            properties={"UNIQ_KEY": f"C0000202201A4E0E2F2A66E0{n:08X}", "WAIT": "true"},
        )
        for n in range(size)
    ]
    body = encode_batch(messages)
    for number in range(count // size):
        fields = send_fields(number, m="true")
        yield encode_frame(RemotingCommand(320, number, 0, "JAVA", 479, None, body, 0, ext_fields=fields))


def pulls(count: int, serialize_type: int = 0, expression: str = "*", step: int = 32) -> Iterator[bytes]:
    """Pulls of 32 messages from four queues in turn, each `step` offsets after the one before it in its queue."""
    for number in range(count // 32):
        fields = pull_fields(number % 4, number // 4 * step, subscription=expression)
        yield encode_frame(RemotingCommand(11, number, 0, "JAVA", 479, None, b"", serialize_type, ext_fields=fields))


def reads(frames: Iterator[bytes]) -> list[bytes]:
    """The frames as a socket delivers them under load: many in one read."""
    every = list(frames)
    return [b"".join(every[start : start + FRAMES_A_READ]) for start in range(0, len(every), FRAMES_A_READ)]


def traffic_of(broker: BrokerController) -> Traffic:
    """Return what a broker's channels share, as its service creates it."""
    served = served_requests(broker)
    return Traffic(served.processors, broker.clock, end_of_read=broker.end_of_read, streaks=served.streaks)


def measure(broker: BrokerController, data: list[bytes]) -> tuple[float, int]:
    """Processor seconds for all reads, and bytes answered."""
    channel = SocketChannel(traffic_of(broker))
    channel.transport = Sink()  # type: ignore[assignment]
    channel.connectionMade()
    began = time.process_time()
    for piece in data:
        channel.dataReceived(piece)
    return time.process_time() - began, channel.transport.written


CASES: dict[str, Callable[[int], Iterator[bytes]]] = {
    "send, JSON header": lambda count: sends(count, 0),
    "send, ROCKETMQ header": lambda count: sends(count, 1),
    "send in batches of 32": batches,
    "pull, 32 a time": pulls,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="bench-broker-", dir=arguments.dir)
    try:
        broker = make_broker(folder)
        print(f"{'what':24} {'us a message':>13} {'messages a second':>18}")
        for name, make in CASES.items():
            data = reads(make(arguments.messages))
            profile = cProfile.Profile()
            if arguments.profile:
                profile.enable()
            seconds, written = measure(broker, data)
            profile.disable()
            cost = seconds / arguments.messages * 1e6
            print(
                f"{name:24} {cost:13.2f} {1e6 / cost:18,.0f}   ({written / arguments.messages:.0f} bytes answered each)"
            )
            if arguments.profile:
                pstats.Stats(profile).sort_stats("tottime").print_stats(14)
        broker.store.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
