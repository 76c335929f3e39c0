"""Reads a slave's reports: the master's reading half of a link (Apache: DefaultHAConnection.ReadSocketService)."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces

from twisted_mq.broker.ha.idle_timer import IdleTimer
from twisted_mq.protocol.layouts.ha import ReportDecoder


class ReadSocketService:
    """Passes on the newest report of each read; calls `silent` if a slave sends nothing for the housekeeping interval.

    `confirms` is called when the slave's reports count in another session than before, which is `session`.
    """

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        housekeeping_seconds: float,
        reported: Callable[[int], None],
        confirms: Callable[[], None],
        silent: Callable[[], None],
    ) -> None:
        self._decoder = ReportDecoder()
        self._confirms = confirms
        self._reported = reported
        self._silence = IdleTimer(clock, housekeeping_seconds, silent)

    def start(self) -> None:
        """Start to watch for silence."""
        self._silence.start()

    def data_received(self, data: bytes) -> None:
        """Read bytes of the slave, cut anywhere."""
        before = self.session
        report = self._decoder.receive_data(data)
        if report is not None:
            self._silence.touch()
            self._reported(report)
        if self.session != before:
            self._confirms()

    @property
    def session(self) -> int:
        """Return the master session in which the slave's reports acknowledge ordered messages; 0 for none."""
        return self._decoder.session

    def stop(self) -> None:
        """Stop watching."""
        self._silence.stop()
