"""Order within a queue over the death of a Java consumer that held it; only here, as locks live a minute at Apache's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.clients import Clients, JavaPeer, PushConsumer, unique
from interop.peers.servers import Cluster, ask
from interop.peers.waiting import ALL_QUEUES, wait_split

pytestmark = pytest.mark.peer

STEPS = 60
PAUSE_MS = 50
UPDATE_AND_CREATE_TOPIC = 17


class ClusterOfShortLocks(Cluster):
    """A dead client's queues are free after two seconds."""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {"rebalanceLockMaxLiveTime": 2000}


@pytest.fixture
def short_locks(tmp_path: Path) -> Iterator[Cluster]:
    servers = ClusterOfShortLocks("ours", tmp_path / "servers")
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def numbers(consumer: PushConsumer, queue_id: int) -> list[int]:
    return [int(message["body"]) for message in consumer.messages if message["queue_id"] == queue_id]


def test_order_of_each_queue_outlives_a_killed_consumer(java: JavaPeer, short_locks: Cluster, tmp_path: Path) -> None:
    """The other goes on at or before where the killed one was, and leaves nothing out: order, with some of it twice."""
    topic, group = unique("Topic"), unique("Group")
    fields = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
    more = {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "true"}
    ask(short_locks.broker_port, UPDATE_AND_CREATE_TOPIC, fields | more)
    short_locks.wait_route(topic)
    staying, victim = Clients(java, short_locks.name_server), JavaPeer(tmp_path)
    try:
        stays = staying.push_consumer(group, topic, orderly=True, pause_ms=PAUSE_MS)
        dies = Clients(victim, short_locks.name_server).push_consumer(group, topic, orderly=True, pause_ms=PAUSE_MS)
        wait_split(stays, dies)
        lost = dies.assigned()
        producer = staying.producer()
        for step in range(STEPS):
            for queue_id in ALL_QUEUES:
                producer.command("send_ordered", topic=topic, body=str(step), order_key=queue_id)
            if step == STEPS // 2:
                dies.wait(lambda _: all(numbers(dies, queue_id) for queue_id in lost))
                victim.kill()
        stays.wait(lambda _: all(numbers(stays, queue_id)[-1:] == [STEPS - 1] for queue_id in ALL_QUEUES))
    finally:
        victim.kill()
        staying.stop()
    for queue_id in ALL_QUEUES:
        before, after = numbers(dies, queue_id), numbers(stays, queue_id)
        assert before == list(range(len(before)))
        assert after == list(range(after[0], STEPS))
        assert after[0] <= len(before)
