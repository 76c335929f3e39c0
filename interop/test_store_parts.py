"""Parts of a store that are switched on by hand, handed to Apache's broker and back: queue extensions with the
transient pool, and a log whose oldest files expired."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, flat, unique
from interop.peers.process import wait_until
from interop.peers.servers import CLUSTER_NAME
from interop.peers.waiting import ALL_QUEUES
from interop.test_store_interchange import A_TURN, OTHER, OWN, Relay, SmallFiles

pytestmark = pytest.mark.peer

LONG_AGO_SECONDS = 1_000_000_000


@attrs.define(eq=False)
class Extended(SmallFiles):
    """A cluster whose queues have extension units; records go through buffers."""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {
            "enableConsumeQueueExt": "true",
            "enableCalcFilterBitMap": "true",
            "mappedFileSizeConsumeQueueExt": 512,
            "transientStorePoolEnable": "true",
            "transientStorePoolSize": 4,
        }


@attrs.define(eq=False)
class Forgetful(SmallFiles):
    """A cluster that looks for expired files all the time."""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {"cleanResourceInterval": 100, "deleteWhen": "04"}


@pytest.fixture
def opened(java: JavaPeer, tmp_path: Path) -> Iterator[Callable[[type[SmallFiles]], Relay]]:
    relays: list[Relay] = []

    def open_one(cls: type[SmallFiles]) -> Relay:
        cluster = cls(OWN, tmp_path / "parts")
        cluster.start()
        relay = Relay(cluster, java, Clients(java, cluster.name_server))
        relays.append(relay)
        relay.admin("updateTopic", "-c", CLUSTER_NAME, "-t", relay.topic, "-r", "4", "-w", "4")
        cluster.wait_route(relay.topic)
        return relay

    yield open_one
    for relay in relays:
        relay.clients.stop()
        relay.cluster.stop()


def tagged(relay: Relay) -> list[str]:
    """The bodies with one of the tags, as the broker chooses them by its queues' entries."""
    reader = relay.clients.pull_consumer(unique("Tagged"))

    def of_queue(queue_id: int) -> list[Any]:
        found, offset = [], 0
        while True:
            pulled = reader.command("pull", relay.topic, queue_id, tags="Tag1", offset=offset, max=32)
            found += [one["body"] for one in pulled["messages"]]
            if pulled["next"] == offset:
                return found
            offset = pulled["next"]

    found = flat(of_queue(queue_id) for queue_id in ALL_QUEUES)
    reader.stop()
    return found


def test_queue_extensions_are_the_same_to_both(opened: Callable[[type[SmallFiles]], Relay]) -> None:
    relay = opened(Extended)
    for kind, cleanly in ((OTHER, True), (OWN, True), (OTHER, False), (OWN, False), (OWN, True)):
        relay.send()
        messages, chosen = relay.messages(), tagged(relay)
        assert len(chosen) == sum(message["tags"] == "Tag1" for message in messages) > 0
        units = relay.cluster.store / "consumequeue_ext" / relay.topic
        assert sorted(os.listdir(units)) == [str(queue_id) for queue_id in ALL_QUEUES]
        relay.leave(cleanly)
        relay.open(kind)
        assert (relay.messages(), tagged(relay)) == (messages, chosen)
    relay.leave(cleanly=True)
    assert relay.problems() == []


def test_trimmed_store_is_served_from_its_minimum(opened: Callable[[type[SmallFiles]], Relay]) -> None:
    relay = opened(Forgetful)
    for _ in range(4):
        relay.send()
    relay.messages()
    log = relay.cluster.store / "commitlog"
    oldest = sorted(os.listdir(log))[:-1]
    for name in oldest:
        os.utime(log / name, (LONG_AGO_SECONDS,) * 2)
    assert relay.admin("deleteExpiredCommitLog", "-b", relay.cluster.broker) == ["success"]
    wait_until(lambda: not set(oldest) & set(os.listdir(log)), "the oldest log files are removed")
    wait_until(lambda: min(minima(relay)) > 0, "the queues' minima follow")
    before, rest = minima(relay), from_minimum(relay)
    assert 0 < len(rest) < 4 * A_TURN
    for kind, cleanly in ((OTHER, True), (OWN, False)):
        relay.leave(cleanly)
        relay.open(kind)
        assert (minima(relay), from_minimum(relay)) == (before, rest)
    relay.leave(cleanly=True)
    assert relay.problems() == []


def minima(relay: Relay) -> list[int]:
    """The queues' minimum offsets as topicStatus tells them: broker, queue, minimum, maximum, date and time."""
    lines = (line.split() for line in relay.admin("topicStatus", "-t", relay.topic))
    return [int(words[2]) for words in lines if len(words) > 3 and words[1].isdecimal()]


def from_minimum(relay: Relay) -> list[str]:
    """The bodies that are left."""
    reader = relay.clients.pull_consumer(unique("Rest"))
    found: list[str] = []
    for queue_id, offset in enumerate(minima(relay)):
        while True:
            pulled = reader.command("pull", relay.topic, queue_id, tags="*", offset=offset, max=32)
            if not pulled["messages"]:
                break
            found += [one["body"] for one in pulled["messages"]]
            offset = pulled["next"]
    reader.stop()
    return found
