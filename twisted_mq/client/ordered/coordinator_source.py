"""Finds the coordinator of ordered topics: given by the user, by its address, or reported by the topic's brokers."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.ordered.errors import CoordinatorUnknown, CoordinatorUnreachable
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.coordination.settings import CoordinatorSettings

COORDINATOR_KEY = "orderCoordinator"

Given = ICoordinator | CoordinatorSettings | str
"""A client of the coordinator, settings to connect to it, or its address."""

Connect = Callable[[CoordinatorSettings], ICoordinator]
"""Makes a client of the coordinator, not started."""


class CoordinatorSource:
    """The session that all units of one producer or consumer share. Its owner starts and stops a given coordinator."""

    def __init__(self, given: Given | None, client: MQClient, connect: Connect) -> None:
        self._given = given
        self._client = client
        self._connect = connect
        self._own: ICoordinator | None = None
        self._waiting: list[defer.Deferred[ICoordinator]] | None = None

    async def of_topic(self, topic: str) -> ICoordinator:
        """Return the coordinator, connected. Raises CoordinatorUnknown, CoordinatorUnreachable, or why brokers can't be asked."""
        given = self._given
        if given is not None and not isinstance(given, str | CoordinatorSettings):
            return given
        if self._own is not None:
            return self._own
        waiting: defer.Deferred[ICoordinator] = defer.Deferred()
        if self._waiting is None:
            self._waiting = [waiting]
            defer.Deferred.fromCoroutine(self._make(topic)).addBoth(self._made)
        else:
            self._waiting.append(waiting)
        return await waiting

    async def stop(self) -> None:
        """End the session, unless the coordinator was given."""
        own, self._own = self._own, None
        if own is not None:
            await own.stop()

    def _made(self, result: ICoordinator | failure.Failure) -> None:
        waiting, self._waiting = self._waiting or [], None
        for one in waiting:
            one.callback(result)  # with a Failure this starts the errback chain

    async def _make(self, topic: str) -> ICoordinator:
        given = self._given
        if isinstance(given, str | CoordinatorSettings):
            where = given
        else:
            where = await self._address_by_brokers(topic)
        try:
            settings = CoordinatorSettings(parse_address(where)) if isinstance(where, str) else where
            coordinator = self._connect(settings)
            await coordinator.start()
        except (CoordinationError, ValueError) as error:
            raise CoordinatorUnreachable(f"topic {topic}", error) from error
        self._own = coordinator
        return coordinator

    async def _address_by_brokers(self, topic: str) -> str:
        """Return the first address that one of the topic's brokers reports."""
        await self._client.routes.find(topic)
        for broker in self._client.routes.addresses_of(topic):
            try:
                config = await self._client.calls.broker_config(broker)
            except EXPECTED_ERRORS:
                continue
            address = config.get(COORDINATOR_KEY)
            if address:
                return address
        raise CoordinatorUnknown(topic)
