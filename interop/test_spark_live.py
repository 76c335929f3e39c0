"""Requests of Spark's tasks to a broker, without Spark, against both clusters: pulls of live queues, sends of the sink."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from interop.peers.clients import Clients
from interop.peers.process import wait_until
from interop.peers.servers import Cluster as Servers
from interop.peers.waiting import stored
from twisted_mq.spark.live.batch_reader import LiveBatchReader
from twisted_mq.spark.live.cluster import Access, Cluster
from twisted_mq.spark.live.options import live_options
from twisted_mq.spark.live.queue_offsets import commit_offsets, group_offsets, next_offsets
from twisted_mq.spark.sink.options import SinkOptions
from twisted_mq.spark.sink.sending import SendLimits
from twisted_mq.spark.sink.writer import write_partition

pytestmark = pytest.mark.peer


def rows(servers: Servers, topic: str, **options: object) -> list[dict[str, object]]:
    given = {"nameServer": servers.name_server, "topic": topic, **{name: str(value) for name, value in options.items()}}
    reader = LiveBatchReader(
        live_options(given), ["queueId", "queueOffset", "body", "tags", "keys", "uniqKey", "bodyCRC"]
    )
    return [row for split in reader.partitions() for batch in reader.read(split) for row in batch.to_pylist()]


def bodies(found: Iterable[dict[str, object]]) -> list[str]:
    return sorted(bytes(row["body"]).decode() for row in found)  # type: ignore[call-overload]


def wait_queued(servers: Servers, topic: str, count: int) -> None:
    """A broker acknowledges before it dispatches."""
    cluster = Cluster(Access((servers.name_server,)))

    def queued() -> bool:
        return sum(next_offsets(cluster, cluster.readable_queues(topic)).values()) == count

    wait_until(queued, f"{count} messages in the queues of {topic}")
    cluster.close()


def test_pulls_bring_what_a_java_client_sent(cluster: Servers, java_clients: Clients, topic: str, group: str) -> None:
    producer = java_clients.producer()
    big = "compressed " * 2000
    results = producer.send_all(topic, [big, *(f"single {number}" for number in range(40))], tags="TagA", keys="k1 k2")
    producer.command("send_batch", messages=[{"topic": topic, "body": f"batch {n}", "tags": "TagB"} for n in range(70)])
    wait_queued(cluster, topic, 111)
    found = rows(cluster, topic, minPartitions=9, pullMessages=8)
    assert bodies(found) == sorted([big, *(f"single {n}" for n in range(40)), *(f"batch {n}" for n in range(70))])
    by_place = {(row["queueId"], row["queueOffset"]): row for row in found}
    assert len(by_place) == 111
    for result in results:
        row = by_place[result["queue_id"], result["queue_offset"]]
        assert (row["tags"], row["keys"], [row["uniqKey"]]) == ("TagA", "k1 k2", result["msg_ids"])
    assert bodies(rows(cluster, topic, tags="TagB || TagC")) == sorted(f"batch {n}" for n in range(70))
    assert rows(cluster, topic, startingOffsets="latest") == []

    reader = Cluster(Access((cluster.name_server,)))
    queues = reader.readable_queues(topic)
    rows(cluster, topic, group=group)  # whereby the broker knows the group
    commit_offsets(reader, group, {queues[1]: 3})
    assert group_offsets(reader, queues, group) == {queues[1]: 3}
    reader.close()


def test_a_java_client_reads_what_the_sink_sends(
    cluster: Servers, java_clients: Clients, topic: str, group: str
) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "body": [f"row {number}".encode() for number in range(60)],
            "tags": ["TagA"] * 60,
            "keys": [f"k{number}" for number in range(60)],
            "properties": pa.array([[("colour", "grün")]] * 60, pa.map_(pa.string(), pa.string())),
            "shardingKey": [str(number % 7) for number in range(60)],
        }
    )
    options = SinkOptions(Access((cluster.name_server,)), topic, limits=SendLimits(messages=20, in_flight=3))
    assert write_partition(iter([batch]), options, "q", 4, 2).messages == 60
    messages = stored(java_clients.pull_consumer(group), topic, 60)
    found = {message["body"]: message for message in messages}
    assert sorted(found) == sorted(f"row {number}" for number in range(60))
    one = found["row 17"]
    assert (one["tags"], one["keys"], one["msg_id"]) == ("TagA", "k17", "q-4-2-17")
    assert one["properties"]["colour"] == "grün"
    for key in range(7):
        of_key = [message for message in messages if message["body"] in {f"row {n}" for n in range(key, 60, 7)}]
        assert len({message["queue_id"] for message in of_key}) == 1
        assert [message["body"] for message in of_key] == [f"row {n}" for n in range(key, 60, 7)]
