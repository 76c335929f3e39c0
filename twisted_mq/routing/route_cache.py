"""Routes of the topics that a client uses, and the brokers in them. Queries a topic once at a time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.protocol.bodies import BrokerData, MessageQueue, TopicRouteData, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetRouteInfoRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.static_topics import is_logical, logical_queues
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC
from twisted_mq.protocol.names.topic_route import route_for_new_topic
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.routing.errors import AccessDenied, BrokerGone, TopicCreationRefused, TopicNotFound
from twisted_mq.routing.name_servers import NameServers

RouteChanged = Callable[[str, TopicRouteData], None]

_DEFAULT = ""
"""Key of the query for the route of new topics; no topic has an empty name."""


@attrs.frozen
class RoutedBroker:
    """A broker process as routes name it; id 0 is the master."""

    broker_name: str
    broker_id: int
    address: str


class RouteCache:
    """Asks the name servers and remembers their answers. A topic that vanished keeps its last route, as in Apache's client."""

    def __init__(self, name_servers: NameServers, changed: RouteChanged) -> None:
        self._name_servers = name_servers
        self._changed = changed
        self._routes: dict[str, TopicRouteData] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._logical: dict[MessageQueue, str] = {}
        """Logical queues of static topics -> the name of the broker that has the queue now."""
        self._asked: dict[str, list[defer.Deferred[TopicRouteData]]] = {}

    def get(self, topic: str) -> TopicRouteData | None:
        """Return the last known route; None if it is not known."""
        return self._routes.get(topic)

    async def find(self, topic: str) -> TopicRouteData:
        """Return the route; ask for it if it is not known. Raises NoRoute."""
        known = self._routes.get(topic)
        return known if known is not None else await self.update(topic)

    async def find_or_default(self, topic: str, queue_nums: int) -> TopicRouteData:
        """Return the route as `find`; for a topic that does not exist yet, the route on which its first send creates it."""
        try:
            return await self.find(topic)
        except TopicNotFound:
            try:
                default = await self._share(_DEFAULT, lambda: self._query(AUTO_CREATE_TOPIC))
            except TopicNotFound:
                raise TopicCreationRefused(topic, self._name_servers.addresses) from None
        route = route_for_new_topic(default, queue_nums)
        self._remember(topic, route)
        return route

    def update(self, topic: str) -> defer.Deferred[TopicRouteData]:
        """Ask now. Callers that ask for the same topic meanwhile get the same answer. Fails with NoRoute."""
        return self._share(topic, lambda: self._query_and_remember(topic))

    def _share(
        self, key: str, ask: Callable[[], Coroutine[defer.Deferred[object], object, TopicRouteData]]
    ) -> defer.Deferred[TopicRouteData]:
        """Return the answer to a question; it is asked once for all callers that wait for it."""
        waiting: defer.Deferred[TopicRouteData] = defer.Deferred()
        asked = self._asked.setdefault(key, [])
        asked.append(waiting)
        if len(asked) == 1:
            defer.Deferred.fromCoroutine(ask()).addBoth(self._tell, key)
        return waiting

    def brokers(self) -> Iterator[RoutedBroker]:
        """Iterate over every broker process of every known route."""
        for name, broker in sorted(self._brokers.items()):
            for broker_id, address in sorted(broker.broker_addrs.items()):
                yield RoutedBroker(name, broker_id, address)

    def broker(self, broker_name: str) -> BrokerData | None:
        """Return the addresses of a broker name; None if no route names it."""
        return self._brokers.get(broker_name)

    def placed(self, queue: MessageQueue) -> MessageQueue:
        """Return the queue with its broker's name: for a logical queue the broker that has it now, else the queue as it is."""
        broker_name = self._logical.get(queue) if self._logical else None
        return queue if broker_name is None else attrs.evolve(queue, broker_name=broker_name)

    async def locate(self, queue: MessageQueue) -> MessageQueue:
        """Return the queue as `placed`; ask for the route if it does not say which broker has a logical queue. Raises NoRoute."""
        placed = self.placed(queue)
        if is_logical(placed.broker_name):
            await self.update(queue.topic)
            placed = self.placed(queue)
        return placed

    def broker_of(self, queue: MessageQueue) -> BrokerData | None:
        """Return the addresses of the queue's broker; None if no route names it."""
        return self._brokers.get(self.placed(queue).broker_name)

    async def master_of(self, queue: MessageQueue) -> str:
        """Return the address of the master of a queue's broker, as `master`."""
        return await self.master((await self.locate(queue)).broker_name, queue.topic)

    async def serving(self, queue: MessageQueue) -> str:
        """Return the address of a queue's master, or of a slave while no route names a master. Raises NoRoute."""
        broker_name, topic = (await self.locate(queue)).broker_name, queue.topic
        address = self.master_now(broker_name)
        if address is None:
            await self.update(topic)
            address = self.master_now(broker_name)
        broker = self._brokers.get(broker_name)
        if address is None and broker is not None and broker.broker_addrs:
            return broker.broker_addrs[min(broker.broker_addrs)]
        if address is None:
            raise BrokerGone(broker_name, self._name_servers.addresses)
        return address

    async def master(self, broker_name: str, topic: str) -> str:
        """Return the address of a broker's master; ask for the topic's route if it is not known. Raises NoRoute."""
        address = self.master_now(broker_name)
        if address is None:
            await self.update(topic)
            address = self.master_now(broker_name)
        if address is None:
            raise BrokerGone(broker_name, self._name_servers.addresses)
        return address

    def master_now(self, broker_name: str) -> str | None:
        broker = self._brokers.get(broker_name)
        return None if broker is None else broker.broker_addrs.get(MASTER_ID)

    def addresses_of(self, topic: str) -> list[str]:
        """Return an address for each broker of a topic, the master's if the route has a master."""
        route = self._routes.get(topic)
        if route is None:
            return []
        return [
            one.broker_addrs.get(MASTER_ID, next(iter(one.broker_addrs.values())))
            for one in route.broker_datas
            if one.broker_addrs
        ]

    def forget(self, topic: str) -> None:
        """Drop the route of a topic that is no longer used."""
        if self._routes.pop(topic, None) is not None:
            self._collect_brokers()

    async def _query_and_remember(self, topic: str) -> TopicRouteData:
        return self._remember(topic, await self._query(topic))

    async def _query(self, topic: str) -> TopicRouteData:
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, encode_header(header))
        return await self._name_servers.ask(request, lambda answer: self._route(topic, answer))

    def _route(self, topic: str, answer: RemotingCommand) -> TopicRouteData:
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise TopicNotFound(topic, self._name_servers.addresses)
        if answer.code == ResponseCode.NO_PERMISSION:
            raise AccessDenied(topic, self._name_servers.addresses, answer.remark or "")
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        return decode_body(TopicRouteData, answer.body)

    def _remember(self, topic: str, route: TopicRouteData) -> TopicRouteData:
        changed = self._routes.get(topic) != route
        self._routes.pop(topic, None)  # the newest is last: its addresses of a broker take precedence
        self._routes[topic] = route
        if changed:
            self._collect_brokers()
            self._changed(topic, route)
        else:
            self._brokers.update((one.broker_name, one) for one in route.broker_datas)
        return route

    def _tell(self, result: TopicRouteData | failure.Failure, key: str) -> None:
        for waiting in self._asked.pop(key):
            waiting.callback(result)  # with a Failure this starts the errback chain

    def _collect_brokers(self) -> None:
        self._brokers = {one.broker_name: one for route in self._routes.values() for one in route.broker_datas}
        self._logical = {
            queue: broker
            for topic, route in self._routes.items()
            for queue, broker in logical_queues(topic, route).items()
        }
