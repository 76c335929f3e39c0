"""A leading producer's reports of heads that it cannot reach, and the pauses between them."""

from __future__ import annotations

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.coordination.interfaces import Conflict, CoordinationError, Create, Delete, ICoordinator, Put
from twisted_mq.coordination.nodes import make_paths
from twisted_mq.logs import Logger
from twisted_mq.ordering.documents import UnreachedHead, encode_unreached
from twisted_mq.ordering.paths import LEADERS, unreached_path

LONGEST_PAUSE_SESSIONS = 16


class HeadReports:
    """The reports of one producer and unit. The pause before a report of another head doubles with each report.

    It is short again after a head answered. So a producer that reaches no group does not move the queue in circles.
    """

    log = Logger()

    def __init__(self, client: MQClient, coordinator: ICoordinator, topic: str, unit: str) -> None:
        self._client = client
        self._coordinator = coordinator
        self._parent = f"{LEADERS}/{topic}/{unit}"
        self._path = unreached_path(topic, unit)
        self._reported: UnreachedHead | None = None
        self._pause_sessions = 1
        self._not_before = 0.0

    def unreached(self, group: str, epoch: int) -> None:
        """Report that the head has not answered for a while."""
        report = UnreachedHead(group, epoch, self._client.client_id)
        now = self._client.reactor.seconds()
        if report == self._reported or now < self._not_before:
            return
        self._reported = report
        self._not_before = now + self._pause_sessions * self._coordinator.session_seconds
        self._pause_sessions = min(2 * self._pause_sessions, LONGEST_PAUSE_SESSIONS)
        self.log.warn("head not reached, reported: {report}", report=report)
        defer.Deferred.fromCoroutine(self._write(encode_unreached(report))).addErrback(self._failed)

    def reached(self) -> None:
        """Note that a head answered: withdraw the report."""
        self._pause_sessions, self._not_before = 1, 0.0
        if self._reported is not None:
            self._reported = None
            defer.Deferred.fromCoroutine(self._withdraw()).addErrback(self._failed)

    async def _write(self, data: bytes) -> None:
        try:
            await make_paths(self._coordinator, [self._parent])
            try:
                await self._coordinator.commit([Create(self._path, data)])
            except Conflict:
                await self._coordinator.commit([Put(self._path, data, None)])
        except CoordinationError as error:
            self._reported = None  # the next look reports it again
            self.log.warn("report of a head not written: {error}", error=error)

    async def _withdraw(self) -> None:
        try:
            await self._coordinator.commit([Delete(self._path)])
        except CoordinationError as error:
            self.log.info("report of a head stays: {path} {error}", path=self._path, error=error)

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("report of a head: {path}", reason, path=self._path)
