"""A real ZooKeeper that is restored from an older snapshot: nothing is skipped, and an operator's repair brings all back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interop.peers.ordered_groups import MASTER, OrderedGroups, OrderedLoad, OrderedReceiver, OrderedSender, now
from interop.peers.process import wait_until
from interop.peers.requirements import require_java

pytestmark = pytest.mark.peer

TOPIC, UNIT = "Orders", "0"
NAMES = ("broker-a", "broker-b")


def restart_zookeeper(groups: OrderedGroups) -> None:
    groups.zookeeper.start()
    groups.zookeeper.wait_serving()


def test_restored_snapshot_blocks_the_queue_until_it_is_repaired(tmp_path: Path) -> None:
    require_java()
    groups, load = OrderedGroups(tmp_path, NAMES), OrderedLoad()
    data, copy = groups.zookeeper.directory / "data", tmp_path / "copy"
    try:
        groups.start()
        groups.create(TOPIC, 1)
        groups.zookeeper.kill()
        shutil.copytree(data, copy)
        restart_zookeeper(groups)
        groups.wait_lists(TOPIC, [UNIT], lambda lists: set(lists.send) == set(NAMES))
        newer = send_in_two_epochs(groups, load)

        groups.zookeeper.kill()
        for member in groups.members.values():
            member.kill()
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        restart_zookeeper(groups)
        start_in_turn(groups, newer)

        wait_until(lambda: stores(groups) == set(NAMES), lambda: str(groups.order("show", TOPIC)))
        (blocked,) = groups.order("show", TOPIC)["units"][0]["blocked"]
        assert "the coordinator has an older state" in blocked
        assert "mq order repair Orders" in blocked
        shown = groups.order("repair", TOPIC)
        assert not shown["written"]
        assert stores(groups) == set(NAMES), "it is only shown"
        assert groups.order("repair", TOPIC, "--yes")["repairs"] == shown["repairs"]
        assert groups.order("repair", TOPIC)["repairs"] == []
        receiver = OrderedReceiver(groups, TOPIC, "receiver-2")
        load.receivers.append(receiver)
        receiver.consume()
        load.check()
        groups.wait_lists(TOPIC, [UNIT], lambda lists: set(lists.send) == set(NAMES) and len(lists.consume) == 1)
        assert groups.audit()["faults"] == []
    finally:
        load.stop()
        groups.stop()


def stores(groups: OrderedGroups) -> set[str]:
    """The groups that said what they hold."""
    found = groups.order("repair", TOPIC, *(part for name in NAMES for part in ("--without", name)))
    return {group for repair in found["repairs"] for group in repair["stores"]}


def start_in_turn(groups: OrderedGroups, newer: str) -> None:
    """Start the group with the newer epoch first, until it has told.

    If others are up first, they may make it the head again in the epoch that it had. Then its store is as new as the lists, and
    nothing is blocked, see docs/explanation/ordered-safety.md.
    """
    first = [member for (name, _), member in groups.members.items() if name == newer]
    groups.start_members(first)
    wait_until(lambda: newer in stores(groups), lambda: str(groups.order("show", TOPIC)))
    groups.start_members(member for member in groups.members.values() if member not in first)


def send_in_two_epochs(groups: OrderedGroups, load: OrderedLoad) -> str:
    """Some messages are consumed; those of the second group, and maybe some of the first one, are not. Returns the second."""
    receiver, sender = OrderedReceiver(groups, TOPIC, "receiver-1"), OrderedSender(groups, TOPIC, "sender")
    load.receivers.append(receiver)
    load.senders.append(sender)
    receiver.consume()
    sender.send(1)
    sender.wait_sent(1, 0.0)
    wait_until(receiver.received, "the first message is consumed")
    receiver.close()
    head = groups.lists(TOPIC, UNIT).head
    assert head is not None
    groups.members[head, MASTER].kill()
    second = next(name for name in NAMES if name != head)
    sender.wait_sent(1, now(), second)
    sender.finish()
    return second
