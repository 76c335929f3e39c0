"""Ordered queues under load while servers of an ensemble of three are lost: one, two, and one beside a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.peers.ordered_groups import MASTER, OrderedGroups, OrderedLoad, OrderedReceiver, OrderedSender, now
from interop.peers.requirements import require_java
from interop.peers.zookeeper import ZooKeeperEnsemble

pytestmark = pytest.mark.peer

TOPIC, UNIT = "Orders", "0"
NAMES = ("broker-a", "broker-b")
SESSION_SECONDS = 10.0
"""Longer than a leader's election, so that a lost server costs no session; the longest that ZooKeeper grants here."""
SLOW_SLAVE = "its slave does not keep up"
"""Reason of a master that leaves the send list: a machine may stop for a second."""


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
    before, sessions = groups.lists(TOPIC, UNIT), groups.sessions()
    leader.kill()
    second = ensemble.leader()
    sender.wait_sent(1, now())
    assert groups.sessions() == sessions
    assert groups.lists(TOPIC, UNIT).epoch == before.epoch or any(
        SLOW_SLAVE in groups.members[name, MASTER].output() for name in NAMES
    ), "the broker that took sends goes on to"

    second.kill()
    load.wait_still(SESSION_SECONDS / 2)
    at = now()
    second.start()
    sender.wait_sent(1, at)

    lost, at = sender.sent()[-1]["group"], now()
    groups.members[lost, MASTER].kill()
    sender.wait_sent(1, at, next(name for name in NAMES if name != lost))
    leader.start()
    groups.members[lost, MASTER].start()
