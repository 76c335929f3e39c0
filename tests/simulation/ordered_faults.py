"""Additional faults of ordered broker groups: their sessions, both brokers at once, and their operators."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from tests.simulation.coordinator import CoordinatorNode, DistantZooKeeper, StaleCoordinator
from tests.simulation.faults import FAULTS, Begin, Cluster
from tests.simulation.nodes import BrokerNode, Node
from tests.simulation.ordered_clients import LineNode, OperatorNode
from tests.simulation.ordered_observer import OrderedObserver
from twisted_mq.ordering.lists import OrderedTopic

End = Callable[[], None]

MOST_TIMES = 5
"""That sends are disturbed in one fault."""
SUSPENDED_SECONDS = (5.0, 19.0)
"""Around a session's time, and less than what the slave waits for a silent master."""
UNHEARD_SECONDS = 26.0
"""After 24 s a broker knows that a name server did not hear of a change."""
NEW_TOPICS = 4
"""That are made one after the other when a name server can be reached again."""
LONG_SECONDS = 20.0
"""In which a broker that is alone hands out all that it has."""


class OrderedCluster(Cluster, Protocol):
    """Cluster that these faults act on."""

    observer: OrderedObserver
    coordinator: CoordinatorNode
    operator: OperatorNode
    topics: list[OrderedTopic]


def cut_from_coordinator(cluster: OrderedCluster, source: random.Random) -> End | None:
    """Nothing gets through between a host and the coordinator, or in one direction only."""
    node, coordinator = source.choice([*cluster.brokers, *cluster.clients]), cluster.coordinator
    pair = (node.name, coordinator.name) if source.random() < 0.5 else (coordinator.name, node.name)
    network, both = cluster.world.network, source.random() < 0.6
    cluster.observer.links_fail()
    cluster.world.told("cut" if both else "cut-one-way", sender=pair[0], receiver=pair[1])
    (network.cut if both else network.cut_one_way)(*pair)

    def end() -> None:
        cluster.world.told("heal", host=node.name, others=coordinator.name)
        network.heal(*pair)

    return end


def _session(cluster: OrderedCluster, source: random.Random) -> tuple[Node, StaleCoordinator | DistantZooKeeper] | None:
    """End the session of a running process."""
    clients = cluster.coordinator.clients
    nodes = [node for node in (*cluster.brokers * 2, *cluster.clients) if node.is_running and node.name in clients]
    if not nodes or not cluster.coordinator.is_running:
        return None
    node = source.choice(nodes)
    cluster.observer.nodes_fail()
    return node, clients[node.name]


def break_session(cluster: OrderedCluster, source: random.Random) -> End | None:
    """The connection to the coordinator breaks, now or between the next change and its answer."""
    found = _session(cluster, source)
    if found is None:
        return None
    at_next_change = source.random() < 0.5
    cluster.world.told("session-broken", host=found[0].name, at_next_change=at_next_change)
    if at_next_change:
        found[1].drop_answer()
    elif not found[0].host.is_paused:
        found[1].break_connection()
    return lambda: None


def fall_in_a_send(cluster: OrderedCluster, source: random.Random) -> End | None:
    """A broker is killed, or its power is cut, while a message is on its way through the groups."""
    broker = source.choice(cluster.brokers)
    in_the_dark = source.random() < 0.3

    def fall() -> None:
        if broker.is_running and not broker.host.is_paused:
            _fall(cluster, broker, in_the_dark=in_the_dark)

    cluster.observer.nodes_fail()
    cluster.observer.at_next_send = fall

    def end() -> None:
        cluster.observer.forget(fall)
        cluster.restart(broker)

    return end


def _pair(cluster: OrderedCluster, group: str) -> list[BrokerNode]:
    """Master and slave."""
    return sorted((one for one in cluster.brokers if one.broker_name == group), key=lambda one: one.is_slave)


def suspend_head(cluster: OrderedCluster, source: random.Random) -> End | None:
    """The machine of a head is suspended in the middle of a send, often with those of its producers, and goes on cut off.

    By their clocks nothing has happened: head and producers have their sessions. Its slave is there, the coordinator is not.
    """
    topic = source.choice(cluster.topics)
    unit, suspended = source.choice(topic.units), list[Node]()
    lasts, cut_off = source.uniform(*SUSPENDED_SECONDS), source.uniform(0.0, 6.0)
    producers = [one for one in cluster.clients if isinstance(one, LineNode)] if source.random() < 0.7 else []
    network, coordinator = cluster.world.network, cluster.coordinator.name

    def suspend() -> None:
        head = cluster.observer.lists(topic.topic, unit).head
        for node in () if head is None else (_pair(cluster, head)[0], *producers):
            if node.is_running and not node.host.is_paused:
                cluster.world.told("suspend", host=node.name, in_a_send=True)
                network.cut(node.name, coordinator)
                node.host.suspend()
                suspended.append(node)
        cluster.world.clock.callLater(lasts, wake)

    def wake() -> None:
        for node in suspended:
            cluster.world.told("wake", host=node.name)
            if node.host.is_suspended:
                node.host.wake()
            cluster.world.clock.callLater(cut_off, network.heal, node.name, coordinator)

    def end() -> None:
        cluster.observer.forget(suspend)

    cluster.observer.machine_is_suspended()
    cluster.observer.links_fail()
    cluster.observer.at_next_send = suspend
    return end


def reset_in_a_send(cluster: OrderedCluster, source: random.Random) -> End | None:
    """A broker's connections to its clients, or to its partner, break while messages are on their way, time and again."""
    master, slave = _pair(cluster, source.choice(cluster.brokers).broker_name)
    others, left = source.choice(([slave], cluster.clients, cluster.clients)), MOST_TIMES

    def reset() -> None:
        nonlocal left
        left -= 1
        for other in others:
            cluster.world.network.reset(master.name, other.name)
        cluster.observer.at_next_send = reset if left > 0 else None

    def end() -> None:
        nonlocal left
        left = 0
        cluster.observer.forget(reset)

    cluster.observer.links_fail()
    cluster.world.told("resets", host=master.name, others=",".join(one.name for one in others))
    cluster.observer.at_next_send = reset
    return end


def cut_senders(cluster: OrderedCluster, source: random.Random) -> End | None:
    """No producer reaches a healthy head, or hears of it; its consumers, its slave and the coordinator do."""
    topic = source.choice(cluster.topics)
    head = cluster.observer.lists(topic.topic, source.choice(topic.units)).head
    if head is None:
        return None
    master, network = _pair(cluster, head)[0].name, cluster.world.network
    senders = [one.name for one in cluster.clients if isinstance(one, LineNode)]
    hear = source.random() < 0.5
    cluster.observer.links_fail()
    cluster.world.told("cut-senders", host=master, senders=",".join(senders), hear=hear)
    for sender in senders:
        network.cut_one_way(*((sender, master) if hear else (master, sender)))

    def end() -> None:
        cluster.world.told("heal", host=master, others=",".join(senders))
        for sender in senders:
            network.heal(sender, master)

    return end


def lag_in_a_send(cluster: OrderedCluster, source: random.Random) -> End | None:
    """The head's slave is out of reach from the middle of a send on, nearly as long as that waits for it, or longer."""
    topic = source.choice(cluster.topics)
    unit, left, lagging = source.choice(topic.units), MOST_TIMES, list[tuple[str, str]]()

    def cut() -> None:
        nonlocal left
        left -= 1
        head = cluster.observer.lists(topic.topic, unit).head
        if head is not None:
            master, slave = _pair(cluster, head)
            cluster.world.told("cut", sender=master.name, receiver=slave.name)
            cluster.world.network.cut(master.name, slave.name)
            lagging.append((master.name, slave.name))
        cluster.world.clock.callLater(source.uniform(1.0, 4.0), heal)

    def heal() -> None:
        while lagging:
            cluster.world.network.heal(*lagging.pop())
        if left > 0:
            cluster.observer.at_next_send = cut

    def end() -> None:
        nonlocal left
        left = 0
        cluster.observer.forget(cut)
        heal()

    cluster.observer.links_fail()
    cluster.observer.at_next_send = cut
    return end


def _fall(cluster: OrderedCluster, broker: BrokerNode, *, in_the_dark: bool) -> None:
    if in_the_dark:
        cluster.observer.before_power_cut(broker)
        broker.cut_power()
    else:
        broker.kill()


def lose_group(cluster: OrderedCluster, source: random.Random) -> End | None:
    """Both brokers of a group are gone, one right after the other; they come back one after the other.

    Where one of them was killed and the power of the other one was cut, that was in a send, and that one is back first: it
    lacks what its partner has.
    """
    name = source.choice(sorted({broker.broker_name for broker in cluster.brokers}))
    both = [broker for broker in cluster.brokers if broker.broker_name == name]
    source.shuffle(both)
    dark = [broker for broker in both if source.random() < 0.4]
    between = source.choice((0.0, 3.0, LONG_SECONDS))

    def fall() -> None:
        for broker in sorted(both, key=lambda one: one not in dark):
            if broker.is_running:
                _fall(cluster, broker, in_the_dark=broker in dark)

    def end() -> None:
        cluster.observer.forget(fall)
        first, second = sorted(both, key=lambda one: one not in dark) if len(dark) == 1 else both[::-1]
        cluster.restart(first)
        cluster.world.clock.callLater(LONG_SECONDS if len(dark) == 1 else between, cluster.restart, second)

    cluster.observer.nodes_fail()
    if len(dark) == 1:
        cluster.observer.at_next_send = fall
    else:
        fall()
    return end


def retire(cluster: OrderedCluster, source: random.Random) -> End | None:
    """Planned maintenance of a group."""
    group = source.choice(sorted({broker.broker_name for broker in cluster.brokers}))
    cluster.operator.wish(group, retired=True)
    return lambda: cluster.operator.wish(group, retired=False)


def move(cluster: OrderedCluster, source: random.Random) -> End | None:
    """A queue is handed over."""
    topic = source.choice(cluster.topics)
    cluster.operator.move(topic, source.choice(topic.units), source.choice(topic.groups))
    return lambda: None


def cut_from_name_server(cluster: OrderedCluster, source: random.Random) -> End | None:
    """A head moves while a name server can't be reached, and topics are made just when it can be again.

    That name server missed the first change, and must not take the next one for all that it missed.
    """
    topic, server = source.choice(cluster.topics), source.choice(cluster.name_servers)
    unit, group, network = source.choice(topic.units), source.choice(topic.groups), cluster.world.network
    head = cluster.observer.lists(topic.topic, unit).head
    if head is None:
        return None
    master, began, left = _pair(cluster, head)[0], cluster.world.seconds, NEW_TOPICS
    cluster.observer.links_fail()
    cluster.world.told("cut", sender=master.name, receiver=server.name)
    network.cut(master.name, server.name)
    cluster.operator.move(topic, unit, group)

    def heal() -> None:
        cluster.world.told("heal", host=master.name, others=server.name)
        network.heal(master.name, server.name)
        make()

    def make() -> None:
        nonlocal left
        left -= 1
        if master.is_running and not master.host.is_paused:
            master.service.controller.topics.create_for_group(f"new-{cluster.world.seconds:g}", 1)
        if left > 0:
            cluster.world.clock.callLater(source.uniform(0.1, 1.0), make)

    def end() -> None:
        cluster.world.clock.callLater(max(0.0, began + UNHEARD_SECONDS - cluster.world.seconds), heal)

    return end


ORDERED_FAULTS: dict[str, Begin] = FAULTS | {  # type: ignore[assignment]
    "cut from coordinator": cut_from_coordinator,
    "cut from name server": cut_from_name_server,
    "broken session": break_session,
    "fall in a send": fall_in_a_send,
    "suspended head": suspend_head,
    "reset in a send": reset_in_a_send,
    "lag in a send": lag_in_a_send,
    "senders cut off": cut_senders,
    "lost group": lose_group,
    "retired group": retire,
    "moved queue": move,
}
