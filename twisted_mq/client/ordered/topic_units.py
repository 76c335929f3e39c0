"""The declared ordered topics that a client uses, each read once."""

from __future__ import annotations

import collections

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.ordered.coordinator_source import CoordinatorSource
from twisted_mq.client.ordered.errors import CoordinatorUnreachable, OrderedTopicUnknown, QueueBlocked, QueueUnknown
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.ordering.documents import DocumentFault, decode_topic
from twisted_mq.ordering.lists import WHOLE_TOPIC, OrderedTopic
from twisted_mq.ordering.paths import topic_path


async def read_topic(coordinator: ICoordinator, topic: str) -> OrderedTopic:
    """Return the topic's declaration. Raises OrderedTopicUnknown, QueueBlocked or CoordinatorUnreachable."""
    path = topic_path(topic)
    try:
        node = await coordinator.read(path)
        if node is None:
            raise OrderedTopicUnknown(topic)
        return decode_topic(path, node.data)
    except CoordinationError as error:
        raise CoordinatorUnreachable(f"topic {topic}", error) from error
    except DocumentFault as fault:
        raise QueueBlocked(topic, WHOLE_TOPIC, fault) from fault


def unit_of(declared: OrderedTopic, queue_id: int) -> str:
    """Return the unit that a queue belongs to. Raises QueueUnknown."""
    if not 0 <= queue_id < declared.queues:
        raise QueueUnknown(f"topic {declared.topic} has the ordered queues 0 to {declared.queues - 1}, not {queue_id}")
    return WHOLE_TOPIC if declared.together else str(queue_id)


Found = tuple[OrderedTopic, ICoordinator]


class DeclaredTopics:
    """The topics asked for, with the coordinator. Callers continue in the order in which they asked."""

    def __init__(self, source: CoordinatorSource) -> None:
        self._source = source
        self._known: dict[str, Found] = {}
        self._asked: dict[str, collections.deque[defer.Deferred[Found]]] = {}

    def known(self, topic: str) -> Found | None:
        """Return the topic if it was found before."""
        return self._known.get(topic)

    def forget(self, topic: str) -> None:
        """Forget the topic, so that it is read again: its declaration may change."""
        self._known.pop(topic, None)

    def find(self, topic: str) -> defer.Deferred[Found]:
        """Return the topic, found once. Fails with OrderedError, NoRoute, RemotingError or BrokerError."""
        waiting: defer.Deferred[Found] = defer.Deferred()
        if topic in self._asked:
            self._asked[topic].append(waiting)
        else:
            self._asked[topic] = collections.deque([waiting])
            defer.Deferred.fromCoroutine(self._read(topic)).addBoth(self._found, topic)
        return waiting

    async def _read(self, topic: str) -> Found:
        coordinator = await self._source.of_topic(topic)
        return await read_topic(coordinator, topic), coordinator

    def _found(self, result: Found | failure.Failure, topic: str) -> None:
        """Continue all callers, then remember the topic: callers that ask meanwhile queue up behind them."""
        asked = self._asked[topic]
        while asked:
            asked.popleft().callback(result)
        del self._asked[topic]
        if isinstance(result, tuple):
            self._known[topic] = result
