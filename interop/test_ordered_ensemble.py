"""Ordered queues under load while servers of an ensemble of three are lost: one, two, and one beside a broker."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interop.peers.ordered_groups import MASTER, OrderedGroups, OrderedLoad, OrderedReceiver, OrderedSender, now
from interop.peers.requirements import require_java
from interop.peers.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.peer

TOPIC, UNIT = "Orders", "0"
NAMES = ("broker-a", "broker-b")
SESSION_SECONDS = 6.0
"""Longer than a leader's election, so that a lost server costs no session."""


def test_order_outlives_the_loss_of_servers(tmp_path: Path) -> None:
    require_java()
    ensemble = ZooKeeperEnsemble(tmp_path / "zookeeper")
    groups, load = OrderedGroups(tmp_path, NAMES, SESSION_SECONDS, ensemble=ensemble), OrderedLoad()
    try:
        groups.start()
        groups.create(TOPIC, 1)
        load.receivers.append(OrderedReceiver(groups, TOPIC, "receiver"))
        load.senders.append(OrderedSender(groups, TOPIC, "sender"))
        load.receivers[0].consume()
        load.senders[0].send(1)
        load.senders[0].wait_sent(1, 0.0)
        lose_servers(groups, ensemble, load)
        load.senders[0].finish()
        load.check()
        groups.wait_lists(TOPIC, [UNIT], lambda lists: set(lists.send) == set(NAMES) and len(lists.consume) == 1)
        assert groups.audit()["faults"] == []
    finally:
        load.stop()
        groups.stop()


def lose_servers(groups: OrderedGroups, ensemble: ZooKeeperEnsemble, load: OrderedLoad) -> None:
    sender, leader = load.senders[0], ensemble.leader()
    before, at = groups.lists(TOPIC, UNIT), now()
    leader.kill()
    sender.wait_sent(1, at)
    assert groups.lists(TOPIC, UNIT).head == before.head, "the broker that took sends goes on to"

    second = ensemble.leader()
    second.kill()
    time.sleep(SESSION_SECONDS)
    waiting = load.acknowledged()
    time.sleep(1.0)
    assert load.acknowledged() == waiting, "without a majority nobody is the head for certain"
    at = now()
    second.start()
    sender.wait_sent(1, at)

    lost = groups.lists(TOPIC, UNIT).head
    assert lost is not None
    at = now()
    groups.members[lost, MASTER].kill()
    sender.wait_sent(1, at, next(name for name in NAMES if name != lost))
    leader.start()
    groups.members[lost, MASTER].start()
