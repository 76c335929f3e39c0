"""Scenario of a seed: a cluster of some size and configuration, work, faults, and the time after them in which all must recover.

Another kind of service or workload is a `Node` that a scenario creates and starts; the observer checks its promises.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.simulation.clients import ClientNode, LiteNode, OrderlyNode, ProducingNode, PushNode
from tests.simulation.fault_weights import draw
from tests.simulation.faults import FAULTS
from tests.simulation.nodes import BrokerNode, NameServerNode, Node
from tests.simulation.observer import GROUPS, Observer
from tests.simulation.world import Broken, World
from twisted_mq.protocol.layouts.ha import ConnectionState

CALM_SECONDS = 240.0
"""Time after the last fault until everything must be delivered."""

PROBE_SECONDS = 8.0
"""Idle timers and threads may be some seconds late; a pull is held for 15 s and longer."""

HALF_OPEN_SECONDS = 35.0
"""A client that waits for a held pull learns of a power cut by that pull's timeout, 30 s, and pulls again 3 s later."""

ROUTE_SECONDS = 31.0
"""A client asks for routes every 30 s: one that asked while a broker was down, or a name server that had just started and knew
a part of the brokers, learns of the others then."""

SHORTEST_SECONDS = 0.001

QUICK_CHECKS = {"transaction_check_interval": 1_000, "transaction_time_out": 1_500}
"""With these a transaction that stays undecided is given up within a world's time."""


class Scenario:
    """Made from a world; `run` raises Broken."""

    faults_by_name = FAULTS
    group_counts: Sequence[int] = (1, 1, 2)
    slave_chance = 0.7
    name_server_options: Mapping[str, Any] = {}

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(world.random.getrandbits(32))
        self.faults: Counter[str] = Counter()
        self._ends: list[tuple[float, Callable[[], None]]] = []
        self._build()

    def _build(self) -> None:
        world, source = self.world, self.random
        self.timed = source.random() < 0.5
        self.name_servers = [
            NameServerNode(world, f"10.0.0.{n + 1}", **self.name_server_options)
            for n in range(source.choice((1, 1, 2)))
        ]
        self.brokers = [
            broker
            for group in range(source.choice(self.group_counts))
            for broker in self._group(group, source.random() < self.slave_chance)
        ]
        kinds = self._kinds()
        members = Counter(kind.group for kind in kinds if kind.group)
        self.observer = self._observer(members, sends_are_repeated=source.random() < 0.3)
        self.clients = [
            kind(world, f"10.0.9.{n + 1}", self.observer, self._addresses()) for n, kind in enumerate(kinds)
        ]
        for client in self.clients:
            client.brokers = {one.name: one.broker_name for one in self.brokers}
            client.timed = self.timed

    @property
    def nodes(self) -> list[Node]:
        return [*self.name_servers, *self.brokers, *self.clients]

    @property
    def machines(self) -> list[Node]:
        """Return the machines that fail: brokers more often than others."""
        return [*self.brokers * 3, *self.name_servers, *self.clients]

    def _observer(self, members: Counter[str], *, sends_are_repeated: bool) -> Observer:
        return Observer(self.world, self.brokers, members, sends_are_repeated=sends_are_repeated)

    def _group_settings(self, number: int) -> dict[str, Any]:
        """Return settings of all brokers of a group, in addition to those drawn here."""
        return {}

    def _addresses(self) -> list[str]:
        return [server.address for server in self.name_servers]

    def _group(self, number: int, with_slave: bool) -> list[BrokerNode]:
        source, name = self.random, f"broker-{'ab'[number]}"
        role = source.choice(("SYNC_MASTER", "SYNC_MASTER", "ASYNC_MASTER")) if with_slave else "ASYNC_MASTER"
        common: dict[str, Any] = {
            "broker_name": name,
            "namesrv_addr": ";".join(self._addresses()),
            "flush_disk_type": source.choice(("ASYNC_FLUSH", "SYNC_FLUSH")),
            "slave_read_enable": source.random() < 0.5,
        }
        if role == "SYNC_MASTER":
            common["in_sync_replicas"] = 2
        common |= source.choice(({}, QUICK_CHECKS))
        common["timer_wheel_enable"] = self.timed
        common["mapped_file_size_commit_log"] = source.choice((64 << 10, 8 << 10))
        common |= self._group_settings(number)
        master = BrokerNode(self.world, f"10.0.{number + 1}.1", broker_role=role, **common)
        if not with_slave:
            return [master]
        slave = BrokerNode(self.world, f"10.0.{number + 1}.2", broker_role="SLAVE", broker_id=1, **common)
        return [master, slave]

    def _kinds(self) -> list[type[ClientNode]]:
        source = self.random
        kinds: list[type[ClientNode]] = [ProducingNode, PushNode, OrderlyNode]
        if source.random() < 0.5:
            kinds.append(LiteNode)
        return kinds + source.choices((PushNode, OrderlyNode, ProducingNode), k=source.choice((0, 1)))

    # the run

    def run(self) -> None:
        source = self.random
        self._start()
        end = self.world.seconds + source.uniform(20.0, 70.0)
        kinds = draw(sorted(self.faults_by_name), source.choice((1, 2, 3, 5)), source)
        pause = source.choice((1.5, 5.0, 12.0))
        while self.world.seconds < end:
            self._pass(source.uniform(0.0, 2 * pause))
            self._begin(source.choice(kinds))
        self._calm()

    def _start(self) -> None:
        for node in self.nodes:
            node.start()
        self._pass(3.0)

    def _begin(self, kind: str) -> None:
        over = self.faults_by_name[kind](self, self.random)
        if over is not None:
            self.faults[kind] += 1
            lasts = self.random.choice((0.5, 3.0, 12.0, 40.0)) * self.random.random()
            self._ends.append((self.world.seconds + lasts, over))

    def _pass(self, seconds: float) -> None:
        """Let time pass; look each second, end the faults whose time is over."""
        end = self.world.seconds + seconds
        while (left := end - self.world.seconds) > SHORTEST_SECONDS:
            self.world.run(min(1.0, left))
            self._look()
            due = [one for one in self._ends if one[0] <= self.world.seconds]
            self._ends = [one for one in self._ends if one[0] > self.world.seconds]
            for _, over in due:
                over()

    def _look(self) -> None:
        self.observer.look()
        for threads in self.world.threads.values():
            if threads.errors:
                raise Broken(f"a thread of {threads.host.name} ended: {threads.errors[0].getTraceback()}")
        for slave in self.brokers:
            if slave.is_slave and slave.is_running and not slave.host.is_paused:
                self._mend(slave)

    def restart(self, node: Node) -> None:
        """Start a node again, as its operator would."""
        if not node.is_running:
            node.start()
            if isinstance(node, BrokerNode):
                self._started(node)

    def _started(self, broker: BrokerNode) -> None:
        """Act as the operator after a broker's start."""
        self.observer.after_start(broker, is_copy=broker.has_copy)
        if broker.may_lack_topics:
            self._make_topics(broker)
        broker.has_copy = False

    def _make_topics(self, broker: BrokerNode) -> None:
        """Create topics again: a slave copies its master's topics once a minute, so a master started from its disk may lack the
        newest."""
        for topic in sorted({*GROUPS.values()}):
            broker.service.controller.topics.create_for_group(topic, broker.options["default_topic_queue_nums"])

    def _mend(self, slave: BrokerNode) -> None:
        """A slave whose log is no part of its master's says so and stops; its operator gives it an empty disk."""
        if has_given_up(slave):
            slave.kill()
            slave.wipe()
            self.observer.forget_comparison(slave)
            slave.start()

    def _calm_down(self) -> None:
        """Take back what operators wanted."""

    def _be_quiet(self) -> None:
        """Have nothing more sent."""
        for client in self.clients:
            if isinstance(client, ProducingNode):
                client.is_quiet = True

    def _calm(self) -> None:
        """End all faults; then everything is delivered, and every service is well."""
        asked_late = any(not broker.is_running for broker in self.brokers) or any(
            not server.is_running or server.started_at > self.world.seconds - ROUTE_SECONDS
            for server in self.name_servers
        )
        while self._ends:
            self._ends.pop(0)[1]()
        for node in self.nodes:
            self.restart(node)
        self._calm_down()
        self.world.told("calm")
        known = self.world.seconds + (ROUTE_SECONDS if asked_late else 0.0)
        self._until_registered()
        self._pass(6.0)
        self._be_quiet()
        waited = 0.0
        while (missing := self.observer.missing()) or waited < 10.0:
            if waited > CALM_SECONDS:
                raise Broken(f"not delivered {CALM_SECONDS:g} s after the last fault: {', '.join(missing[:5])}")
            self._pass(5.0)
            waited += 5.0
        self.observer.check_queues()
        self._probe(known)

    def _until_registered(self) -> None:
        """Wait until each name server knows each broker: without a route no client finds it, or tells it what it is."""
        end = self.world.seconds + CALM_SECONDS
        while missing := [
            f"{broker.name} at {server.name}"
            for server in self.name_servers
            for broker in self.brokers
            if not server.knows(broker)
        ]:
            if self.world.seconds > end:
                raise Broken(f"not registered {CALM_SECONDS:g} s after the last fault: {', '.join(missing)}")
            self._pass(1.0)

    def _probe(self, known: float) -> None:
        """Nothing fails any more, and all clients know all brokers from `known` on: what is sent now is consumed at once.

        (A lost wakeup costs the time of a held pull.)
        """
        dark = max(broker.dark_since for broker in self.brokers)
        self._pass(max(0.0, dark + HALF_OPEN_SECONDS - self.world.seconds, known - self.world.seconds))
        self.observer.is_probed = True
        first = len(self.observer.sent)
        for client in self.clients:
            client.probe()
        self._pass(PROBE_SECONDS)
        late = self.observer.late_probes(first)
        if late:
            raise Broken(f"not consumed within {PROBE_SECONDS:g} s while nothing fails: {', '.join(late[:5])}")


def has_given_up(slave: BrokerNode) -> bool:
    client = slave.service.controller.ha.client
    return client is not None and client.state is ConnectionState.SHUTDOWN
