"""Faults of a simulated cluster: each begins, lasts, and ends; all is drawn from the world's seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from tests.simulation.disk import USUALLY_USED
from tests.simulation.nodes import BrokerNode, NameServerNode, Node
from tests.simulation.observer import Observer
from tests.simulation.world import World
from twisted_mq.testing.virtual_network import USUAL_DELAY


class Cluster(Protocol):
    """Cluster that faults act on."""

    world: World
    observer: Observer
    name_servers: list[NameServerNode]
    brokers: list[BrokerNode]
    clients: Sequence[Node]

    @property
    def nodes(self) -> list[Node]: ...

    @property
    def machines(self) -> list[Node]:
        """Return the machines that fail; those that fail more often are repeated."""

    def restart(self, node: Node) -> None: ...


Begin = Callable[[Cluster, random.Random], "Callable[[], None] | None"]
"""Begins a fault; answers what ends it, or None where there is nothing to do it to."""


def _running(nodes: Sequence[Node], source: random.Random) -> Node | None:
    running = [node for node in nodes if node.is_running and not node.host.is_paused]
    return source.choice(running) if running else None


def kill(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """SIGKILL, and a start some time after."""
    node = _running(cluster.machines, source)
    if node is None:
        return None
    cluster.observer.nodes_fail()
    node.kill()
    return lambda: cluster.restart(node)


def cut_power(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """A broker's machine goes dark, now or in the middle of its next sync, of any file or of its log, and boots again."""
    broker = _running(cluster.brokers, source)
    if not isinstance(broker, BrokerNode):
        return None
    cluster.observer.nodes_fail()
    host = broker.host

    def cut() -> None:
        if broker.is_running and broker.host is host:
            cluster.observer.before_power_cut(broker)
            broker.cut_power()

    def end() -> None:
        broker.disk.in_next_sync = None
        cut()
        cluster.restart(broker)

    if source.random() < 0.5:
        broker.disk.in_next_sync = cut
        broker.disk.in_a_sync_of = source.choice(("", "commitlog"))
    else:
        cut()
    return end


def lose_disk(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """A master's disk is gone for good; its operator gives it a copy of its slave's, which has all that was acknowledged."""
    running = [broker for broker in cluster.brokers if broker.is_running]
    pairs = [
        (master, slave)
        for master in running
        for slave in running
        if master.is_sync_master and slave.is_slave and slave.broker_name == master.broker_name
    ]
    if not pairs:
        return None
    master, slave = source.choice(pairs)
    cluster.observer.nodes_fail()
    master.kill()

    def end() -> None:
        if master.is_running or not slave.is_running or not cluster.observer.has_all(slave):
            cluster.restart(master)
            return
        slave.kill()
        master.take_store_of(slave)
        cluster.restart(master)
        cluster.restart(slave)

    return end


def stop(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """A clean stop, and a start some time after."""
    broker = _running(cluster.brokers, source)
    if broker is None:
        return None
    cluster.observer.nodes_fail()
    broker.stop()
    return lambda: cluster.restart(broker)


def pause(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """SIGSTOP and SIGCONT."""
    node = _running(cluster.machines, source)
    if node is None:
        return None
    cluster.observer.nodes_fail()
    host = node.host
    cluster.world.told("pause", host=node.name)
    host.pause()

    def end() -> None:
        cluster.world.told("resume", host=node.name)
        host.resume()

    return end


def suspend(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """Suspend a virtual machine: its process does nothing, and none of its clocks counts the time until it goes on."""
    node = _running(cluster.machines, source)
    if node is None:
        return None
    cluster.observer.machine_is_suspended()
    host = node.host
    cluster.world.told("suspend", host=node.name)
    host.suspend()

    def end() -> None:
        cluster.world.told("wake", host=node.name)
        host.wake()

    return end


def _two(cluster: Cluster, source: random.Random) -> tuple[Node, Node]:
    """Return a broker and any other host: clients rarely talk to each other."""
    one = source.choice(cluster.brokers)
    return one, source.choice([node for node in cluster.nodes if node is not one])


def cut_link(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """Nothing gets through between two hosts, or in one direction only."""
    one, other = _two(cluster, source)
    network, both = cluster.world.network, source.random() < 0.6
    cluster.observer.links_fail()
    cluster.world.told("cut" if both else "cut-one-way", sender=one.name, receiver=other.name)
    (network.cut if both else network.cut_one_way)(one.name, other.name)
    return lambda: _heal(cluster, one, [other])


def isolate(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """Cut a host from all others."""
    one = source.choice(cluster.machines)
    others = [node for node in cluster.nodes if node is not one]
    cluster.observer.links_fail()
    cluster.world.told("isolate", host=one.name)
    for other in others:
        cluster.world.network.cut(one.name, other.name)
    return lambda: _heal(cluster, one, others)


def _heal(cluster: Cluster, one: Node, others: Sequence[Node]) -> None:
    cluster.world.told("heal", host=one.name, others=",".join(other.name for other in others))
    for other in others:
        cluster.world.network.heal(one.name, other.name)


def reset(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """All connections of two hosts break."""
    one, other = _two(cluster, source)
    cluster.observer.links_fail()
    cluster.world.told("reset", one=one.name, other=other.name)
    cluster.world.network.reset(one.name, other.name)
    return lambda: None


def slow_disk(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """Slow down syncs, up to longer than any timeout."""
    broker = source.choice(cluster.brokers)
    low = source.choice((0.05, 0.5, 6.0))
    broker.disk.latency = (low, low * 2)
    cluster.world.told("slow-disk", host=broker.name, seconds=low)

    def end() -> None:
        cluster.world.told("disk-as-before", host=broker.name)
        broker.disk.latency = broker.disk.usual_latency

    return end


def scarce_disk(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """A disk is so full that the oldest files of the log go. (Of a broker alone: a slave that lacks them needs a new store.)"""
    counts = Counter(broker.broker_name for broker in cluster.brokers)
    alone = [broker for broker in cluster.brokers if counts[broker.broker_name] == 1]
    if not alone:
        return None
    broker = source.choice(alone)
    broker.disk.used, broker.disk.was_scarce = 0.87, True
    cluster.world.told("scarce-disk", host=broker.name)

    def end() -> None:
        cluster.world.told("disk-has-room", host=broker.name)
        broker.disk.used = USUALLY_USED

    return end


def slow_network(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """Everything takes longer, and connections overtake each other by more."""
    network = cluster.world.network
    network.delay = (0.001, source.choice((0.05, 0.3, 1.0)))
    cluster.observer.links_fail()
    cluster.world.told("slow-network", most=network.delay[1])

    def end() -> None:
        cluster.world.told("network-as-before")
        network.delay = USUAL_DELAY

    return end


def wrong_clock(cluster: Cluster, source: random.Random) -> Callable[[], None] | None:
    """A host's clock jumps, or goes wrong for some time; what it is ahead or behind stays."""
    node = _running(cluster.machines, source)
    if node is None:
        return None
    host, jump = node.host, source.choice((0.0, -20.0, -3.0, 3.0, 20.0, 90.0))
    rate = 1.0 if jump else source.choice((0.9, 0.99, 1.01, 1.1))
    cluster.observer.clocks_are_right = False
    cluster.observer.links_fail()
    cluster.world.told("clock", host=node.name, jump=jump, rate=rate)
    host.set_clock(jump, rate)
    return lambda: host.set_clock()


FAULTS: dict[str, Begin] = {
    "kill": kill,
    "power cut": cut_power,
    "lost disk": lose_disk,
    "stop": stop,
    "pause": pause,
    "suspension": suspend,
    "cut link": cut_link,
    "isolation": isolate,
    "reset": reset,
    "slow disk": slow_disk,
    "scarce disk": scarce_disk,
    "slow network": slow_network,
    "wrong clock": wrong_clock,
}
