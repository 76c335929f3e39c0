"""A broker, and the name server with it, that dies while it is read and written, and comes back."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from interop.peers.process import free_port, wait_until
from tests.spark.live.brokers import NOW_MS, Broker
from tests.support.embedded import EmbeddedProcess
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import BrokerSilent, NameServersSilent
from twisted_mq.spark.live.offset_maps import OffsetMap
from twisted_mq.spark.live.options import live_options
from twisted_mq.spark.live.pulling import PullLimits, PullSelection, Stretch, StretchPull
from twisted_mq.spark.live.rows import RowMaker
from twisted_mq.spark.live.stream_reader import LiveStreamReader
from twisted_mq.spark.live.tasks import pulled_bodies
from twisted_mq.spark.sink.columns import Outgoing
from twisted_mq.spark.sink.sending import PartitionSender, SendLimits


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """Its disk has all that it acknowledged. Its ports are none that a client's connection gets while it is away."""
    options = ("mapped_file_size_commit_log=16777216", 'flush_disk_type="SYNC_FLUSH"')
    with EmbeddedProcess(str(tmp_path / "store"), free_port(), free_port(), options) as started:
        yield started


def of(server: EmbeddedProcess) -> Broker:
    return Broker(server.name_server, server.broker)


def numbered(count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(count)]


def topic_of_ten(broker: Broker) -> str:
    """Return a topic of one queue with ten messages."""
    topic = broker.topic(1)
    broker.send(topic, numbered(10))
    return topic


def stream_of_bodies(server: EmbeddedProcess, topic: str) -> LiveStreamReader:
    """Return a stream of a topic from its begin."""
    given = {"nameServer": server.name_server, "topic": topic, "startingOffsets": "earliest"}
    return LiveStreamReader(live_options(given), ["body"])


def bodies_between(reader: LiveStreamReader, begin: OffsetMap, end: OffsetMap) -> list[bytes]:
    """Return what the stream reads between two offsets."""
    batches = [batch for part in reader.partitions(begin, end) for batch in reader.read(part)]
    return [row["body"] for batch in batches for row in batch.to_pylist()]


def test_a_read_goes_on_where_it_was(server: EmbeddedProcess) -> None:
    broker = of(server)
    topic = broker.topic(1)
    broker.send(topic, numbered(2000))
    cluster = broker.cluster()
    (queue,) = cluster.readable_queues(topic)
    pull = StretchPull(Stretch(queue, 0, 2000), "G", PullSelection(), PullLimits(in_flight=2))
    bodies = pulled_bodies(cluster, pull)
    read = list(itertools.islice(bodies, 5))
    server.kill()
    server.start()
    batches = RowMaker(pull.stretch, ["body"], PullSelection()).batches(itertools.chain(read, bodies))
    assert [row["body"] for batch in batches for row in batch.to_pylist()] == numbered(2000)
    cluster.close()


def test_writing_goes_on_and_nothing_is_lost(server: EmbeddedProcess) -> None:
    broker = of(server)
    topic = broker.topic(2)
    cluster = Cluster(broker.cluster().access)
    sender = PartitionSender(cluster, "G", 0, 0, SendLimits(messages=10, in_flight=4), lambda: NOW_MS)
    for number, body in enumerate(numbered(600)):
        if number == 300:
            server.kill()
            server.start()
        sender.add(Outgoing(number, topic, body, b"UNIQ_KEY\x01%d\x02" % number, number % 2, False))
    sender.flush()
    cluster.close()
    for place, messages in enumerate(broker.read(topic)):
        assert list(dict.fromkeys(message.body for message in messages)) == numbered(600)[place::2]


def test_a_stream_outlasts_a_broker_and_its_name_server(server: EmbeddedProcess) -> None:
    reader = stream_of_bodies(server, topic_of_ten(of(server)))
    start = reader.initialOffset()
    server.kill()
    back = threading.Timer(6, server.start)  # five tries are over after 3 s
    back.start()
    end = reader.latestOffset(start, ReadAllAvailable())
    back.join()
    assert bodies_between(reader, start, end) == numbered(10)
    reader.stop()


def test_restarts_in_a_row_end_no_stream(server: EmbeddedProcess) -> None:
    """Planning and reading go on meanwhile; a broker that was asked to end answers in another way than a killed one."""
    broker = of(server)
    topic = topic_of_ten(broker)
    reader = stream_of_bodies(server, topic)
    begin = reader.initialOffset()

    def restart() -> None:
        for number in range(3):
            server.stop()
            server.start()
            broker.send(topic, numbered(20 + 10 * number)[-10:])
            wait_until(lambda: len(found) == 20 + 10 * number, "the stream read what was sent", 60)  # noqa: B023

    found: list[bytes] = []
    restarts = threading.Thread(target=restart)
    restarts.start()
    rounds = 0
    while restarts.is_alive():
        end = reader.latestOffset(begin, ReadAllAvailable())
        found += bodies_between(reader, begin, end)
        begin, rounds = end, rounds + 1
    assert found == numbered(40)
    assert rounds > 3
    reader.stop()


def test_one_that_stays_away_is_named_with_who_asked(server: EmbeddedProcess) -> None:
    broker = of(server)
    topic = topic_of_ten(broker)
    cluster = broker.cluster()
    (queue,) = cluster.readable_queues(topic)
    pull = StretchPull(Stretch(queue, 0, 10), "G", PullSelection(), PullLimits())
    server.kill()
    with pytest.raises((BrokerSilent, NameServersSilent), match=f"from {cluster.host}.*127.0.0.1"):
        list(pulled_bodies(cluster, pull))
    reader = LiveStreamReader(live_options({"nameServer": server.name_server, "topic": topic, "tries": "1"}), ["body"])
    with pytest.raises(NameServersSilent, match=f"no name server answers, asked from {cluster.host}"):
        reader.initialOffset()
    server.start()
