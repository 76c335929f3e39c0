"""Blocking calls to a cluster: routes from its name servers, requests to its brokers. Connections are opened at first use and
kept.

If a master does not answer, its slaves are asked; with `from_slaves` the slaves are asked first. A failed request to a broker or
name server is retried after pauses: at most `tries` times in total, and until `patience_seconds` have passed.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import attrs

from twisted_mq.protocol.bodies import BrokerData, MessageQueue, TopicList, TopicRouteData, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.headers import GetRouteInfoRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.topic_route import publish_info, subscribe_queues
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.spark.live.connection import BUSY_CODES, Dialling, PeerConnection
from twisted_mq.spark.live.errors import (
    BrokerSilent,
    LiveError,
    NameServersSilent,
    PeerSilent,
    RequestRefused,
    TopicUnknown,
)

Result = TypeVar("Result")

DEFAULT_TRIES = 5
PAUSE_SECONDS = 0.5
"""Pauses from the third try on. The second try comes at once, because a kept connection may have ended."""
LONGEST_PAUSE_SECONDS = 5.0
STREAM_PATIENCE_SECONDS = 300
"""Default time that streams wait for brokers and name servers: longer than a restart."""


@attrs.frozen
class Access:
    """Access to a cluster for readers and writers; it is sent to tasks.

    | option | meaning | default |
    |---|---|---|
    | nameServer | address of the name server; separate several with `;` or commas | required |
    | tries | number of tries for a broker or name server that does not answer, with pauses of 0, 0.5, 1 to 5 s | 5 |
    | patienceSeconds | shortest time to retry: a query continues when the server is back | 0; a stream without `tries`: 300 |
    | timeoutSeconds | timeout for a connection or an answer | 10 |
    | tls | true: encrypt connections | false |
    | tlsCaFile | PEM file of trusted certificates; without it any certificate is accepted | none |
    | accessKey, secretKey | keys that sign requests, for brokers with access control | none |
    | securityToken | additional token | none |
    """

    name_servers: tuple[str, ...]
    dialling: Dialling = attrs.field(factory=Dialling)
    from_slaves: bool = False
    tries: int = DEFAULT_TRIES
    patience_seconds: int | None = None

    def for_stream(self) -> Access:
        """Return a copy with the patience of a stream, if neither patience nor tries are set."""
        if self.patience_seconds is not None or self.tries != DEFAULT_TRIES:
            return self
        return attrs.evolve(self, patience_seconds=STREAM_PATIENCE_SECONDS)

    def is_over(self, failures: int, seconds: float) -> bool:
        """Return True if no retry follows after this many failures in this time."""
        return failures >= self.tries and seconds >= (self.patience_seconds or 0)


class Cluster:
    """Calls to one cluster, from one thread of one process."""

    def __init__(
        self,
        access: Access,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now`: monotonic time in seconds."""
        self.access = access
        self.now = now
        self.host = socket.gethostname()
        self._sleep = sleep
        self._connections: dict[str, PeerConnection] = {}
        self._brokers: dict[str, BrokerData] = {}

    def close(self) -> None:
        """Close all connections; a later call opens new ones."""
        while self._connections:
            self._connections.popitem()[1].close()

    def pause(self, failures: int) -> None:
        """Pause before the try that follows this many failures."""
        if failures > 1:
            self._sleep(min(PAUSE_SECONDS * (failures - 1), LONGEST_PAUSE_SECONDS))

    def refresh(self) -> None:
        """Forget routes, and connections that peers have closed, before another use."""
        self._brokers.clear()
        for connection in self._connections.values():
            connection.close_if_ended()

    def connection(self, address: str) -> PeerConnection:
        """Return the open connection, or a new one. Raises PeerSilent."""
        connection = self._connections.get(address)
        if connection is None or connection.closed:
            connection = self._connections[address] = self.access.dialling.connect(address)
        return connection

    # name servers

    def route(self, topic: str) -> TopicRouteData:
        """Return the route of a topic. Raises TopicUnknown, NameServersSilent."""
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        answer = self._ask_name_servers(RequestCode.GET_ROUTEINFO_BY_TOPIC, encode_header(header))
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise TopicUnknown(topic, self.access.name_servers)
        self._check(answer, f"the route of {topic}")
        route = decode_body(TopicRouteData, answer.body)
        self._brokers.update((broker.broker_name, broker) for broker in route.broker_datas)
        return route

    def readable_queues(self, topic: str) -> list[MessageQueue]:
        """Return the readable queues of the topic, sorted. Raises TopicUnknown."""
        return subscribe_queues(topic, self.route(topic))

    def writable_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the writable queues of the topic, in the order of all clients. Raises TopicUnknown."""
        return publish_info(topic, self.route(topic)).queues

    def topics(self) -> list[str]:
        """Return the names of all topics."""
        answer = self._ask_name_servers(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {})
        self._check(answer, "the list of topics")
        return decode_body(TopicList, answer.body).topic_list

    def _ask_name_servers(self, code: RequestCode, fields: dict[str, str]) -> RemotingCommand:
        def ask() -> RemotingCommand:
            failures = []
            for address in self.access.name_servers:
                try:
                    return self.connection(address).call(RemotingCommand.request(code, dict(fields)))
                except PeerSilent as error:
                    failures.append(str(error))
            raise NameServersSilent(failures, self.host)

        return self._tried(ask, NameServersSilent)

    def _check(self, answer: RemotingCommand, what: str) -> None:
        if answer.code != ResponseCode.SUCCESS:
            where = ", ".join(self.access.name_servers)
            raise RequestRefused(where, what, answer.code, answer.remark or "", self.host)

    # brokers

    def master(self, broker_name: str) -> str:
        """Return the master's address. Raises PeerSilent if the last route has none."""
        broker = self._brokers.get(broker_name)
        if broker is None or MASTER_ID not in broker.broker_addrs:
            raise PeerSilent(broker_name, "the name servers have no master of it now")
        return broker.broker_addrs[MASTER_ID]

    def replicas(self, queue: MessageQueue) -> list[str]:
        """Return the addresses that serve a queue: its master, then its slaves, or the slaves first; empty if none is known."""
        if queue.broker_name not in self._brokers:
            self._learn(queue.topic)
        broker = self._brokers.get(queue.broker_name)
        known = broker.broker_addrs if broker is not None else {}
        order = sorted(known, key=lambda broker_id: (self.access.from_slaves == (broker_id == MASTER_ID), broker_id))
        return [known[broker_id] for broker_id in order]

    def _learn(self, topic: str) -> None:
        """Store the brokers of a topic; none if the name servers no longer have the topic."""
        with contextlib.suppress(TopicUnknown):
            self.route(topic)

    def forget(self, queue: MessageQueue) -> None:
        """Forget the address of the queue's broker, so that the next use asks the name servers again."""
        self._brokers.pop(queue.broker_name, None)

    def ask_about(
        self,
        queues: Sequence[MessageQueue],
        request: Callable[[MessageQueue], RemotingCommand],
        *,
        at_master: bool = False,
    ) -> Iterator[tuple[MessageQueue, RemotingCommand, str]]:
        """Yield (queue, answer, address that answered) for all queues, with many requests to a broker at once. Raises
        BrokerSilent."""
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        for group in by_broker.values():
            answers, address = self._asked(group, request, at_master)
            yield from ((queue, answer, address) for queue, answer in zip(group, answers, strict=True))

    def _asked(
        self, group: Sequence[MessageQueue], request: Callable[[MessageQueue], RemotingCommand], at_master: bool
    ) -> tuple[list[RemotingCommand], str]:
        """Return the answers to requests about queues of one broker, from any replica that answers all of them."""
        queue = group[0]

        def ask() -> tuple[list[RemotingCommand], str]:
            failures = []
            replicas = self.replicas(queue)
            for address in [self.master(queue.broker_name)] if at_master and replicas else replicas:
                try:
                    return self._served(self.connection(address).call_all(map(request, group)), address), address
                except PeerSilent as error:
                    failures.append(str(error))
            raise BrokerSilent(queue.broker_name, failures, self.host)

        return self._tried(ask, BrokerSilent, PeerSilent, before_next=lambda: self.forget(queue))

    def _served(self, answers: list[RemotingCommand], address: str) -> list[RemotingCommand]:
        """Return the answers. Raises PeerSilent if the broker cannot serve one of the requests now."""
        for answer in answers:
            if answer.code in BUSY_CODES:
                raise PeerSilent(address, f"does not serve now: code {answer.code}, {answer.remark}")
        return answers

    def _tried(
        self,
        attempt: Callable[[], Result],
        *silence: type[LiveError],
        before_next: Callable[[], None] = lambda: None,
    ) -> Result:
        """Return the result of an attempt; after `silence` retry, while tries or patience are left."""
        began, failures = self.now(), 0
        while True:
            try:
                return attempt()
            except silence:
                failures += 1
                if self.access.is_over(failures, self.now() - began):
                    raise
                self.pause(failures)
                before_next()
