"""Keeps the queues of topics on all their brokers, as the name servers know them (Apache: TopicRouteInfoManager).

A topic is looked up once, and again at each `refresh`. A broker without name servers knows its own queues only.
"""

from __future__ import annotations

from twisted.internet import defer

from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.names.topic_route import queues_of, subscribe_queues
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.routing.errors import ClientError, TopicNotFound
from twisted_mq.routing.route_cache import RouteCache


class TopicRoutes:
    """The routes of topics for their consumers. The cache asks the name servers; None without name servers."""

    log = Logger()

    def __init__(self, topics: TopicConfigManager, broker_name: str, cache: RouteCache | None = None) -> None:
        self._topics = topics
        self._broker_name = broker_name
        self._asked: set[str] = set()
        self._cache = cache

    async def queues(self, topic: str) -> list[MessageQueue] | None:
        """Return the readable queues, sorted; None if no name server knows the topic or none answers."""
        if self._cache is None:
            return self._own_queues(topic)
        route = self._cache.get(topic)
        queues = [] if route is None else subscribe_queues(topic, route)
        if not queues:
            await self._ask(self._cache, topic)
            route = self._cache.get(topic)
        return queues if queues or route is None else subscribe_queues(topic, route)

    def refresh(self) -> defer.Deferred[None]:
        """Look up each known topic again; one that is gone is forgotten, unless it is a retry topic."""
        return defer.Deferred.fromCoroutine(self._refresh())

    async def _refresh(self) -> None:
        for topic in sorted(self._asked):
            if self._cache is not None:
                await self._ask(self._cache, topic)

    async def _ask(self, cache: RouteCache, topic: str) -> None:
        try:
            await cache.update(topic)
            self._asked.add(topic)
        except TopicNotFound:
            if not topic.startswith(RETRY_PREFIX):
                cache.forget(topic)
                self._asked.discard(topic)
        except (ClientError, RemotingError, ProtocolError) as error:
            self.log.warn("route not updated: topic={topic} {error}", topic=topic, error=error)

    def _own_queues(self, topic: str) -> list[MessageQueue] | None:
        config = self._topics.get(topic)
        if config is None:
            return None
        count = config.read_queue_nums if config.perm & PermName.PERM_READ else 0
        return queues_of(topic, self._broker_name, count)
