"""Ordered queues under load while brokers, clients, links and ZooKeeper fail: processes, a real ZooKeeper, and one check.

One load runs through all tests: each key's numbers have to come in order, from the first on, with none that was
acknowledged left out; numbers that come again are allowed. Each test begins with all groups in the send lists.

make test takes sessions of 2 s; MQ_ORDER_LONG=1 (make order-cases) the default of 6 s, and ZooKeeper is gone for a minute.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interop.peers.cutting_proxy import CuttingProxy
from interop.peers.ordered_groups import (
    MASTER,
    SLAVE,
    OrderedGroups,
    OrderedLoad,
    OrderedReceiver,
    OrderedSender,
    now,
)
from interop.peers.replicas import Member
from interop.peers.requirements import require_java
from twisted_mq.ordering.lists import Lists

pytestmark = pytest.mark.peer

LONG = os.environ.get("MQ_ORDER_LONG", "") not in ("", "0")
SESSION_SECONDS = 6.0 if LONG else 2.0
ZOOKEEPER_GONE_SECONDS = 60.0 if LONG else 5.0
TOPIC = "Orders"
QUEUES = 2
UNITS = [str(queue) for queue in range(QUEUES)]
NAMES = ("broker-a", "broker-b")


class Scene:
    """The groups with their load."""

    def __init__(self, directory: Path) -> None:
        self.groups = OrderedGroups(directory, NAMES, SESSION_SECONDS)
        self.load = OrderedLoad()
        self.proxies: list[CuttingProxy] = []

    def start(self) -> None:
        self.groups.start()
        self.groups.create(TOPIC, QUEUES)
        self.receiver = self.new_receiver("receiver")
        self.sender = self.new_sender("sender")
        self.sender.wait_sent(QUEUES, 0.0)

    def stop(self) -> None:
        self.load.stop()
        self.groups.stop()
        for proxy in self.proxies:
            proxy.stop()

    def new_sender(self, name: str, **more: object) -> OrderedSender:
        sender = OrderedSender(self.groups, TOPIC, name)
        self.load.senders.append(sender)
        sender.send(QUEUES, **more)
        return sender

    def new_receiver(self, name: str) -> OrderedReceiver:
        receiver = OrderedReceiver(self.groups, TOPIC, name)
        self.load.receivers.append(receiver)
        receiver.consume()
        return receiver

    def proxy(self, port: int) -> CuttingProxy:
        proxy = CuttingProxy(port)
        self.proxies.append(proxy)
        return proxy

    def head(self, unit: str = "0") -> str:
        head = self.groups.lists(TOPIC, unit).head
        assert head is not None
        return head

    def member(self, name: str, broker_id: int) -> Member:
        return self.groups.members[name, broker_id]

    def gather(self, group: str) -> None:
        """Have one group take the sends of all queues, so that its loss is theirs."""
        for unit in UNITS:
            if self.head(unit) != group:
                self.groups.order("move", TOPIC, unit, group)
        self.wait_well()
        self.sender.wait_sent(QUEUES, now(), group)

    def wait_well(self, *names: str) -> None:
        """All groups are in all send lists, and nothing but the head's messages is left to consume."""
        wanted = set(names or self.groups.names)
        self.wait(lambda lists: set(lists.send) == wanted and len(lists.consume) == 1)

    def wait(self, promise: Callable[[Lists], object]) -> None:
        self.groups.wait_lists(TOPIC, UNITS, promise)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    require_java()
    scene = Scene(tmp_path_factory.mktemp("ordered"))
    try:
        scene.start()
        yield scene
        scene.sender.finish()
        scene.load.check()
        scene.wait_well()
        assert scene.groups.audit()["faults"] == []
    finally:
        scene.stop()


@pytest.fixture
def scene(running: Scene) -> Iterator[Scene]:
    running.wait_well()
    yield running
    running.load.check()


def other(scene: Scene, *names: str) -> str:
    return next(name for name in scene.groups.names if name not in names)


def test_a_master_is_killed(scene: Scene) -> None:
    """Its slave serves what it took, another group takes sends; it comes back to the list's end."""
    lost = scene.head()
    scene.gather(lost)
    at = now()
    scene.member(lost, MASTER).kill()
    scene.sender.wait_sent(QUEUES, at, other(scene, lost))
    scene.wait(lambda lists: lost not in lists.send and all(term.group != lost for term in lists.consume))
    scene.load.check()
    scene.member(lost, MASTER).start()
    scene.wait(lambda lists: lists.send[-1] == lost)


def test_a_slave_is_killed(scene: Scene) -> None:
    """A message that only one broker could store is not acknowledged: the group leaves the send list."""
    lost = scene.head()
    scene.gather(lost)
    at = now()
    scene.member(lost, SLAVE).kill()
    scene.sender.wait_sent(QUEUES, at, other(scene, lost))
    scene.wait(lambda lists: lost not in lists.send)
    scene.member(lost, SLAVE).start()


def test_both_brokers_of_a_group_are_killed(scene: Scene) -> None:
    """With a backlog consumers wait for it, and senders go on; after its return its messages come first."""
    lost = scene.head()
    scene.gather(lost)
    scene.receiver.signal(signal.SIGSTOP)
    scene.sender.wait_sent(QUEUES, now(), lost)
    at = now()
    for broker_id in (MASTER, SLAVE):
        scene.member(lost, broker_id).kill()
    scene.sender.wait_sent(QUEUES, at, other(scene, lost))
    scene.receiver.signal(signal.SIGCONT)
    scene.wait(lambda lists: [term.group for term in lists.consume] == [lost, lists.head])
    time.sleep(SESSION_SECONDS)
    assert [scene.groups.lists(TOPIC, unit).consumed.group for unit in UNITS] == [lost] * QUEUES  # type: ignore[union-attr]
    scene.groups.start_members(scene.member(lost, broker_id) for broker_id in (MASTER, SLAVE))


def test_two_groups_fail_in_turn(scene: Scene) -> None:
    """The second goes while the first is still away: senders wait, and go on with the first that is back."""
    first = scene.head()
    scene.gather(first)
    second = other(scene, first)
    at = now()
    scene.member(first, MASTER).kill()
    scene.sender.wait_sent(QUEUES, at, second)
    scene.member(second, MASTER).kill()
    scene.wait(lambda lists: lists.head is None)
    at = now()
    scene.member(first, MASTER).start()
    scene.sender.wait_sent(QUEUES, at, first)
    scene.member(second, MASTER).start()


def test_a_group_returns_with_a_backlog(scene: Scene) -> None:
    """The group accepts no sends before its messages are consumed."""
    lost = scene.head()
    scene.gather(lost)
    scene.receiver.signal(signal.SIGSTOP)
    scene.sender.wait_sent(QUEUES, now(), lost)
    at = now()
    scene.member(lost, MASTER).kill()
    scene.sender.wait_sent(QUEUES, at, other(scene, lost))
    scene.member(lost, MASTER).start()
    time.sleep(SESSION_SECONDS)
    for unit in UNITS:
        lists = scene.groups.lists(TOPIC, unit)
        assert lists.consume[0].group == lost
        assert lost not in lists.send
    scene.receiver.signal(signal.SIGCONT)
    scene.wait(lambda lists: lists.send[-1] == lost)


def test_zookeeper_is_gone(scene: Scene) -> None:
    """Sends wait, nothing breaks order, all go on after it; sessions outlive it."""
    scene.groups.zookeeper.kill()
    time.sleep(ZOOKEEPER_GONE_SECONDS)
    waiting = scene.load.acknowledged()
    time.sleep(1.0)
    assert scene.load.acknowledged() == waiting
    scene.groups.zookeeper.start()
    scene.groups.zookeeper.wait_serving()
    scene.sender.wait_sent(QUEUES, now())


def test_a_sender_is_cut_from_zookeeper_from_brokers_and_from_both(scene: Scene) -> None:
    """The sender stops, and another one of its group takes over if the sender's session is lost."""
    groups, first = scene.groups, scene.sender
    to_zookeeper = scene.proxy(groups.zookeeper.port)
    to_brokers = {member.port: scene.proxy(member.port) for member in groups.members.values()}
    ports = {str(port): int(proxy.address.split(":")[1]) for port, proxy in to_brokers.items()}
    cut = scene.new_sender("cut", coordinator=f"{to_zookeeper.address}/mq", ports=ports)
    first.finish()
    first.close()
    cut.wait_sent(QUEUES, now())
    for proxies in ([to_zookeeper], list(to_brokers.values()), [to_zookeeper, *to_brokers.values()]):
        for proxy in proxies:
            proxy.cut()
        time.sleep(SESSION_SECONDS + 1)
        before = cut.acknowledged()
        time.sleep(0.5)
        assert cut.acknowledged() == before
        for proxy in proxies:
            proxy.heal()
        cut.wait_sent(QUEUES, now())
    scene.sender = scene.new_sender("uncut")
    at = now()
    to_zookeeper.cut()
    scene.sender.wait_sent(QUEUES, at)
    to_zookeeper.heal()
    cut.kill()


def test_a_slave_is_slow(scene: Scene) -> None:
    """A slave that does not acknowledge for longer than a second removes its group from the send list until it has caught up."""
    slow = scene.head()
    scene.gather(slow)
    at = now()
    scene.member(slow, SLAVE).signal(signal.SIGSTOP)
    scene.sender.wait_sent(QUEUES, at, other(scene, slow))
    scene.member(slow, SLAVE).signal(signal.SIGCONT)
    scene.wait(lambda lists: lists.send[-1] == slow)


def test_standby_sender_and_receiver_take_over(scene: Scene) -> None:
    """Standbys replace a sender and a receiver that are killed."""
    sender, receiver = scene.sender, scene.receiver
    scene.sender, scene.receiver = scene.new_sender("standby-sender"), scene.new_receiver("standby-receiver")
    time.sleep(1.0)
    assert scene.sender.sent() == []
    assert scene.receiver.received() == []
    at = now()
    receiver.kill()
    sender.kill()
    scene.sender.wait_sent(QUEUES, at)


def test_a_master_stands_still_for_longer_than_its_session(scene: Scene) -> None:
    """When it goes on it takes nothing: not what was sent to it meanwhile, either."""
    paused = scene.head()
    scene.gather(paused)
    at = now()
    scene.member(paused, MASTER).signal(signal.SIGSTOP)
    scene.sender.wait_sent(QUEUES, at, other(scene, paused))
    scene.member(paused, MASTER).signal(signal.SIGCONT)
    scene.wait(lambda lists: lists.send[-1] == paused)


def test_everything_is_restarted_one_after_the_other(scene: Scene) -> None:
    """Each broker, the name server, ZooKeeper, and the clients."""
    for name in scene.groups.names:
        for broker_id in (SLAVE, MASTER):
            member = scene.member(name, broker_id)
            member.stop()
            member.start()
            scene.wait_well()
    scene.groups.stop_name_server()
    scene.groups.start_name_server()
    scene.groups.wait_registered()
    sender, receiver = scene.sender, scene.receiver
    scene.sender, scene.receiver = scene.new_sender("next-sender"), scene.new_receiver("next-receiver")
    at = now()
    sender.finish()
    for one in (sender, receiver):
        one.close()
    scene.sender.wait_sent(QUEUES, at)


def test_a_queue_gets_more_groups(scene: Scene) -> None:
    """A third group takes its turn under load."""
    scene.groups.start_members(scene.groups.add("broker-c", broker_id) for broker_id in (MASTER, SLAVE))
    scene.groups.names = (*NAMES, "broker-c")
    scene.groups.create(TOPIC, QUEUES)
    scene.wait_well()
    scene.gather("broker-c")
