"""Apache's Java clients, unmodified, keep strict order over the loss of a master, in a topic whose queues move together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.clients import Clients, JavaPeer, PushConsumer, unique
from interop.peers.line_peer import Record
from interop.peers.ordered_groups import MASTER, OrderedGroups, faults
from interop.peers.process import wait_until
from interop.peers.requirements import require_java

pytestmark = pytest.mark.peer

KEYS = 6
QUEUES = 4
POLL_MS = 500


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[OrderedGroups]:
    require_java()
    groups = OrderedGroups(tmp_path, ("broker-a", "broker-b"))
    try:
        groups.start()
        yield groups
    finally:
        groups.stop()


def test_order_of_each_key_outlives_a_killed_master(java: JavaPeer, groups: OrderedGroups) -> None:
    """The route shows the senders' group as writable, the consumers' as readable: its slave, while its master is gone."""
    topic = unique("Together")
    groups.create(topic, QUEUES, "--together")
    clients = Clients(java, groups.name_server)
    try:
        consumer = clients.push_consumer(unique("Group"), topic, orderly=True, poll_ms=POLL_MS)
        producer = clients.producer(poll_ms=POLL_MS)
        producer.command("send_keys", topic=topic, keys=KEYS, pause_ms=10)
        sent = java.events

        def acknowledged() -> dict[str, int]:
            return {event["key"]: event["next"] for event in sent("sent", producer.name)}

        def go_on(more: int) -> None:
            wanted = {f"key{key}": acknowledged().get(f"key{key}", 0) + more for key in range(KEYS)}
            wait_until(lambda: reaches(acknowledged(), wanted), f"sends: {sent('not_taken', producer.name)[-2:]}")

        go_on(50)
        lost = groups.lists(topic, "all").head
        assert lost is not None
        groups.members[lost, MASTER].kill()
        go_on(50)
        groups.wait_lists(topic, ["all"], lambda lists: lists.head not in (None, lost))
        groups.wait_lists(topic, ["all"], lambda lists: all(term.group != lost for term in lists.consume))
        groups.members[lost, MASTER].start()
        groups.wait_lists(topic, ["all"], lambda lists: lists.send[-1] == lost)
        second = groups.lists(topic, "all").head
        assert second not in (None, lost)
        groups.members[str(second), MASTER].kill()
        go_on(50)
        assert groups.lists(topic, "all").head == lost
        producer.command("finish_keys")
        wanted = acknowledged()
        consumer.wait(lambda messages: reaches({key: len(found) for key, found in by_key(messages).items()}, wanted))
        check(consumer, wanted)
    finally:
        clients.stop()


def reaches(counts: dict[str, int], wanted: dict[str, int]) -> bool:
    return all(counts.get(key, 0) >= count for key, count in wanted.items())


def by_key(messages: list[Record]) -> dict[str, list[int]]:
    """The numbers of each key as they were consumed, those that came again left out."""
    found: dict[str, dict[int, None]] = {}
    for message in messages:
        key, number = message["body"].split(" ")
        found.setdefault(key, {}).setdefault(int(number))
    return {key: list(numbers) for key, numbers in found.items()}


def check(consumer: PushConsumer, wanted: dict[str, int]) -> None:
    """Each key came whole, without a gap or a swap."""
    received = by_key(consumer.messages)
    assert received.keys() == wanted.keys()
    for key, numbers in received.items():
        assert numbers == list(range(len(numbers))), (key, faults(numbers))
