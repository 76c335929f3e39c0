"""The meaning of a topic's route for a producer and for a consumer: plain values, no I/O.

Orders are Apache's, because a queue chosen by hash must be the same in every client: publish queues stand by broker
name and then queue id (QueueData.compareTo); message queues compare by topic, broker name, queue id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from twisted_mq.protocol.bodies import BrokerData, MessageQueue, QueueData, TopicRouteData
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.static_topics import logical_queues

QueueFilter = Callable[[MessageQueue], bool]


def queue_order(queue: MessageQueue) -> tuple[str, str, int]:
    """Sort key of MessageQueue.compareTo."""
    return queue.topic, queue.broker_name, queue.queue_id


def _queue_id(queue: MessageQueue) -> int:
    return queue.queue_id


@attrs.define
class TopicPublishInfo:
    """The queues a topic can be sent to, and whose turn it is (Apache: TopicPublishInfo)."""

    topic: str
    queues: tuple[MessageQueue, ...]
    has_order_conf: bool = False
    turn: int = 0
    """Sends go round from here; start it at random so that many producers do not begin at one broker."""

    def select(self, *accept: QueueFilter) -> MessageQueue | None:
        """Return the next queue that all filters accept; None if a whole round has none."""
        for _ in self.queues:
            queue = self.queues[self.turn % len(self.queues)]
            self.turn += 1
            if not accept or all(one(queue) for one in accept):
                return queue
        return None


def publish_info(topic: str, route: TopicRouteData, turn: int = 0) -> TopicPublishInfo:
    """Return the queues to send to: those of the order configuration if there is one, a static topic's logical queues, else
    writable queues of brokers with a master.
    """
    if route.order_topic_conf:
        return TopicPublishInfo(topic, tuple(_ordered_queues(topic, route.order_topic_conf)), True, turn)
    if route.topic_queue_mapping_by_broker:
        return TopicPublishInfo(topic, tuple(sorted(logical_queues(topic, route), key=_queue_id)), False, turn)
    brokers = {broker.broker_name: broker for broker in route.broker_datas}
    queues: list[MessageQueue] = []
    for data in sorted(route.queue_datas, key=lambda one: one.broker_name):
        if _takes_messages(data, brokers.get(data.broker_name)):
            queues += queues_of(topic, data.broker_name, data.write_queue_nums)
    return TopicPublishInfo(topic, tuple(queues), False, turn)


def _takes_messages(data: QueueData, broker: BrokerData | None) -> bool:
    return bool(data.perm & PermName.PERM_WRITE) and broker is not None and MASTER_ID in broker.broker_addrs


def _ordered_queues(topic: str, order_conf: str) -> Iterable[MessageQueue]:
    """Yield the queues of "broker-a:4;broker-b:4", in that order."""
    for item in filter(None, order_conf.split(";")):
        broker_name, _, count = item.partition(":")
        yield from queues_of(topic, broker_name, int(count))


def queues_of(topic: str, broker_name: str, count: int) -> list[MessageQueue]:
    """Return queues 0 to count - 1 of one broker."""
    return [MessageQueue(topic=topic, broker_name=broker_name, queue_id=one) for one in range(count)]


def subscribe_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Return the queues to consume from: every readable queue, sorted. A broker without a master counts: a slave may serve it."""
    if route.topic_queue_mapping_by_broker:
        return sorted(logical_queues(topic, route), key=queue_order)
    queues: list[MessageQueue] = []
    for data in route.queue_datas:
        if data.perm & PermName.PERM_READ:
            queues += queues_of(topic, data.broker_name, data.read_queue_nums)
    return sorted(queues, key=queue_order)


def route_for_new_topic(route: TopicRouteData, queue_nums: int) -> TopicRouteData:
    """Return the default topic's route for a topic that the first send creates, with at most `queue_nums` queues."""
    datas = []
    for data in route.queue_datas:
        count = min(queue_nums, data.read_queue_nums)
        datas.append(attrs.evolve(data, read_queue_nums=count, write_queue_nums=count))
    return attrs.evolve(route, queue_datas=datas)


def pull_address(broker: BrokerData, broker_id: int) -> tuple[str, int] | None:
    """Address and id of the broker to pull from: the suggested one, else another slave, else any of the group.

    The order of MQClientInstance.findBrokerAddressInSubscribe; None where no address is known.
    """
    addresses = broker.broker_addrs
    for candidate in (broker_id, broker_id + 1 if broker_id != MASTER_ID else broker_id):
        if candidate in addresses:
            return addresses[candidate], candidate
    for candidate in sorted(addresses):
        return addresses[candidate], candidate
    return None
