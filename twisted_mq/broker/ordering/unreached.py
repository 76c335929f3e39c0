"""Handles reports of producers that cannot reach this broker while it takes their sends: whether it agrees to leave.

A healthy master that its producer cannot reach is of no use. It leaves when another group is healthy, and not again
within `BOUND_SESSIONS`, so that a producer that reaches no broker does not send the queue round and round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.ordering.units import BrokerUnit
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.logs import Logger
from twisted_mq.ordering.documents import DocumentFault, UnreachedHead, decode_unreached
from twisted_mq.ordering.paths import unreached_path
from twisted_mq.ordering.rules import Fault, Unreached

BOUND_SESSIONS = 10
"""The time, in session timeouts, in which a group that left for a report does not leave for another one."""


class UnreachedReports:
    """The reports of one master's units. `told(unit)` is called after one was read."""

    log = Logger()

    def __init__(
        self, group: str, coordinator: ICoordinator, seconds: Callable[[], float], told: Callable[[BrokerUnit], object]
    ) -> None:
        self._group = group
        self._coordinator = coordinator
        self._seconds = seconds
        self._told = told
        self._followed: dict[BrokerUnit, Callable[[], None]] = {}
        self._reports: dict[BrokerUnit, UnreachedHead] = {}
        self._left_at: dict[BrokerUnit, float] = {}

    def look(self, unit: BrokerUnit) -> None:
        """Follow the reports of a unit while this broker takes its sends."""
        if unit.epoch and unit not in self._followed:
            path = unreached_path(unit.topic, unit.name)
            self._followed[unit] = self._coordinator.watch(path, functools.partial(self._changed, unit, path))
        elif not unit.epoch and unit in self._followed:
            self._followed.pop(unit)()
            self._reports.pop(unit, None)

    def stop(self) -> None:
        """Stop following all reports."""
        for end in self._followed.values():
            end()
        self._followed.clear()

    def event(self, unit: BrokerUnit, fault: Fault) -> Unreached | None:
        """Return the event to apply if this broker agrees to a report."""
        report = self._reports.get(unit)
        if report is None or (report.group, report.epoch) != (self._group, unit.epoch):
            return None
        bound = BOUND_SESSIONS * self._coordinator.session_seconds
        if unit in self._left_at and self._seconds() - self._left_at[unit] < bound:
            return None
        well = any(fault(group) is None for group in unit.lists.send[1:])
        return Unreached(self._group, report.epoch) if well else None

    def left(self, unit: BrokerUnit) -> None:
        """Record that the group left for a report."""
        self._left_at[unit] = self._seconds()

    def _changed(self, unit: BrokerUnit, path: str) -> None:
        defer.ensureDeferred(self._read(unit, path)).addErrback(self._failed, path)

    async def _read(self, unit: BrokerUnit, path: str) -> None:
        try:
            node = await self._coordinator.read(path)
            report = None if node is None else decode_unreached(path, node.data)
        except CoordinationError:
            return  # CONNECTED makes it read again
        except DocumentFault as fault:
            self.log.warn("report skipped: {fault}", fault=fault)
            return
        if report is not None and unit in self._followed:
            self._reports[unit] = report
            if (report.group, report.epoch) == (self._group, unit.epoch):
                self.log.warn(
                    "producer {c} cannot reach this head: {p} epoch={e}", c=report.client, p=path, e=report.epoch
                )
            self._told(unit)

    def _failed(self, reason: failure.Failure, path: str) -> None:
        self.log.failure("{path} not read", reason, path=path)
