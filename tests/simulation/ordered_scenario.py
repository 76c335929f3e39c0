"""A seed whose world has ordered broker groups: with their coordinator, producers and consumers that stand by for each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.simulation.clients import ClientNode
from tests.simulation.coordinator import CoordinatorNode
from tests.simulation.nodes import BrokerNode, NameServerNode, Node
from tests.simulation.ordered_clients import (
    LateConsumingNode,
    LineNode,
    OperatorNode,
    OrderedClientNode,
    OrderedConsumingNode,
    OrderedProducingNode,
    OtherConsumingNode,
)
from tests.simulation.ordered_faults import ORDERED_FAULTS
from tests.simulation.ordered_observer import LATE_GROUP, WHOLE, OrderedObserver, reads
from tests.simulation.scenario import Scenario, has_given_up
from tests.simulation.together_clients import TogetherConsumingNode, TogetherProducingNode
from tests.simulation.world import Broken
from twisted_mq.ordering.lists import OrderedTopic
from twisted_mq.ordering.paths import consumers_path
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.bodies.topic_config import ORDER, ORDER_QUEUES, ORDER_TOGETHER

BEGIN_SECONDS = 60.0
"""Time until the groups must be ready, before the first fault."""


class OrderedScenario(Scenario):
    """Two or three groups of a master and a slave, and topics that are ordered by queues or as a whole."""

    faults_by_name = ORDERED_FAULTS
    observer: OrderedObserver

    def _build(self) -> None:
        world, source = self.world, self.random
        self.name_servers = [
            NameServerNode(world, f"10.0.0.{n + 1}", support_acting_master=True)
            for n in range(source.choice((1, 1, 2)))
        ]
        self.coordinator = CoordinatorNode(world, "10.0.8.1")
        self.operator = OperatorNode(world, "10.0.7.1", self.coordinator)
        groups = ["broker-a", "broker-b", "broker-c"][: source.choice((2, 2, 3))]
        self.brokers = [broker for number, name in enumerate(groups) for broker in self._ordered_group(number, name)]
        self.topics = self._topics(tuple(groups))
        kinds = self._ordered_kinds()
        members = Counter(kind.group for kind in kinds if kind.group)
        self.observer = OrderedObserver(world, self.brokers, members, self.coordinator, self.topics)
        self.clients = [
            kind(world, f"10.0.9.{n + 1}", self.observer, self._addresses()) for n, kind in enumerate(kinds)
        ]
        for client in self.clients:
            if isinstance(client, OrderedClientNode):
                client.coordinator, client.topics = self.coordinator, self.topics

    def _ordered_group(self, number: int, name: str) -> list[BrokerNode]:
        common: dict[str, Any] = {
            "broker_name": name,
            "namesrv_addr": ";".join(self._addresses()),
            "flush_disk_type": self.random.choice(("ASYNC_FLUSH", "ASYNC_FLUSH", "SYNC_FLUSH")),
            "slave_read_enable": True,
            "in_sync_replicas": 2,
            "order_coordinator": f"{self.coordinator.name}:2181",
        }
        master = BrokerNode(self.world, f"10.0.{number + 1}.1", broker_role="SYNC_MASTER", **common)
        slave = BrokerNode(self.world, f"10.0.{number + 1}.2", broker_role="SLAVE", broker_id=1, **common)
        for broker in (master, slave):
            broker.coordinator = self.coordinator.client
        return [master, slave]

    def _topics(self, groups: tuple[str, ...]) -> list[OrderedTopic]:
        source = self.random
        together = source.sample((False, True), k=source.choice((1, 1, 2)))
        return [OrderedTopic(WHOLE if whole else "Queues", source.choice((1, 2)), groups, whole) for whole in together]

    def _ordered_kinds(self) -> list[type[ClientNode]]:
        source = self.random
        kinds: list[type[ClientNode]] = [OrderedProducingNode, OrderedConsumingNode]
        for kind in (OrderedProducingNode, OrderedConsumingNode, OtherConsumingNode):
            if source.random() < 0.5:
                kinds.append(kind)
        if source.random() < 0.4:
            kinds.append(LateConsumingNode)
        if any(topic.together for topic in self.topics) and source.random() < 0.6:
            kinds += [TogetherProducingNode, TogetherConsumingNode]
            kinds += source.choice(((), (TogetherProducingNode,), (TogetherConsumingNode,)))
        return kinds

    @property
    def nodes(self) -> list[Node]:
        return [*self.name_servers, self.coordinator, self.operator, *self.brokers, *self.clients]

    @property
    def machines(self) -> list[Node]:
        return [*self.brokers * 3, *[self.coordinator] * 2, *self.name_servers, *self.clients]

    # the run

    def _start(self) -> None:
        """Groups first, then consumers, so that each group gets all from the first message on; then producers."""
        for node in (*self.name_servers, self.coordinator, self.operator, *self.brokers):
            node.start()
        self._pass(3.0)
        for broker in self.brokers:
            if not broker.is_slave:
                self._make_topics(broker)
        for topic in self.topics:
            self.operator.declare(topic)
        self._until(lambda: not list(self.observer._not_settled()))
        producers = [client for client in self.clients if isinstance(client, LineNode)]
        for client in self.clients:
            if client not in producers and client.group != LATE_GROUP:
                client.start()
        self._until(lambda: self._consumers_count({client.group for client in self.clients} - {"", LATE_GROUP}))
        for producer in producers:
            producer.start()

    def _until(self, promise: Callable[[], bool]) -> None:
        began = self.world.seconds
        while not promise():
            if self.world.seconds > began + BEGIN_SECONDS:
                raise Broken(f"not ready after {BEGIN_SECONDS:g} s: {', '.join(self.observer._not_settled())}")
            self._pass(1.0)

    def _consumers_count(self, groups: set[str]) -> bool:
        tree = self.coordinator.ensemble.tree
        return all(
            set(tree.children(consumers_path(topic.topic, unit))) >= {one for one in groups if reads(one, topic.topic)}
            for topic in self.topics
            for unit in topic.units
        )

    def _begin(self, kind: str) -> None:
        """The late group comes with one of the faults."""
        late = [one for one in self.clients if one.group == LATE_GROUP and not one.is_running and not one.has_begun]
        if late and self.random.random() < 0.3:
            late[0].start()
        super()._begin(kind)

    def _look(self) -> None:
        super()._look()
        observer = self.observer
        if observer.late_since > self.world.clock.now and self._consumers_count({LATE_GROUP}):
            observer.late_since = self.world.clock.now
            self.world.told("late-group-counts")

    def _make_topics(self, broker: BrokerNode) -> None:
        """As `mq order create` does at masters."""
        topics = broker.service.controller.topics
        missing = [one for one in self.topics if topics.get(one.topic) is None]
        if missing:
            topics.update([_config(one) for one in missing])

    def _mend(self, slave: BrokerNode) -> None:
        """A master that lost what its slave has says so: its operator gives it the slave's store."""
        master = next(one for one in self.brokers if one.broker_name == slave.broker_name and not one.is_slave)
        if not master.is_running or master.host.is_paused:
            return
        if has_given_up(slave) or master.service.controller.ha.accept.ahead is not None:
            master.kill()
            slave.kill()
            master.take_store_of(slave)
            self.observer.forget_comparison(slave)
            self.restart(master)
            self.restart(slave)

    def _calm_down(self) -> None:
        for group in sorted({broker.broker_name for broker in self.brokers}):
            self.operator.wish(group, retired=False)

    def _be_quiet(self) -> None:
        for client in self.clients:
            if isinstance(client, LineNode):
                client.is_quiet = True


def _config(declared: OrderedTopic) -> TopicConfig:
    return TopicConfig(
        topic_name=declared.topic,
        read_queue_nums=declared.queues,
        write_queue_nums=declared.queues,
        attributes={ORDER: ORDER_TOGETHER if declared.together else ORDER_QUEUES},
    )
