"""The master's reading half of a link: what the slave reports (Apache: DefaultHAConnection.ReadSocketService)."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces

from twisted_mq.broker.ha.idle_timer import IdleTimer
from twisted_mq.protocol.layouts.ha import ReportDecoder


class ReadSocketService:
    """Hands on the newest report of each read; calls `silent` where a slave says nothing for the housekeeping interval."""

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        housekeeping_seconds: float,
        reported: Callable[[int], None],
        silent: Callable[[], None],
    ) -> None:
        self._decoder = ReportDecoder()
        self._reported = reported
        self._silence = IdleTimer(clock, housekeeping_seconds, silent)

    def start(self) -> None:
        """Begin to watch for silence."""
        self._silence.start()

    def data_received(self, data: bytes) -> None:
        """Bytes of the slave, cut anywhere."""
        report = self._decoder.receive_data(data)
        if report is not None:
            self._silence.touch()
            self._reported(report)

    def stop(self) -> None:
        """Stop watching."""
        self._silence.stop()
