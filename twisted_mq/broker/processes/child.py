"""Runs one broker as a child process: starts it again after it ended, and stops it in order.

STARTING --report--> READY --end--> WAITING --pause is over--> STARTING
    '--------------------end-----------^        any --stop--> STOPPING --end--> STOPPED
"""

from __future__ import annotations

import contextlib
import enum
import json
from collections.abc import Callable
from typing import Protocol

from twisted.internet import defer, error, interfaces, protocol
from twisted.python.failure import Failure

from twisted_mq.broker.processes.child_log import ChildLog
from twisted_mq.broker.processes.lifeline import REPORTS
from twisted_mq.logs import Logger

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A broker that was ready this long is started again after the shortest pause."""
STOP_SECONDS = 100.0
"""The time after which a broker that does not stop is killed: longer than it gives its store to close."""
MOST_REPORT_BYTES = 1000


class State(enum.Enum):
    """States of a child process."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting to be started again"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Spawn(Protocol):
    """Starts the process of the broker with a number, connected to a protocol."""

    def __call__(self, protocol: interfaces.IProcessProtocol, number: int) -> interfaces.IProcessTransport: ...


class Child(protocol.ProcessProtocol):
    """A broker, whichever process runs it. `restarts` counts its processes after the first one.

    `ports` are those of its report, empty unless it is ready. `changed` is called after each change of its state.
    """

    log = Logger()

    def __init__(
        self, name: str, number: int, spawn: Spawn, clock: interfaces.IReactorTime, changed: Callable[[Child], None]
    ) -> None:
        self.name = name
        self.state = State.STOPPED
        self.restarts = 0
        self.ports: dict[str, int] = {}
        self.why = ""
        """The end of its last process as text; empty if none has ended."""
        self._number = number
        self._spawn = spawn
        self._clock = clock
        self._changed = changed
        self._pause = FIRST_PAUSE_SECONDS
        self._ready_at = 0.0
        self._timer: interfaces.IDelayedCall | None = None
        self._process: interfaces.IProcessTransport | None = None
        self._report = b""
        self._output = ChildLog(name)
        self._stopped: list[defer.Deferred[None]] = []

    # life

    def start(self) -> None:
        """Start its process. It is started again after it ends, until `stop`."""
        self._timer = None
        self._report, self._output = b"", ChildLog(self.name)
        self._become(State.STARTING)
        try:
            self._process = self._spawn(self, self._number)
        except OSError as reason:  # no process, or no descriptor, is left on this machine
            self._ended(f"it could not be started: {reason}")

    def stop(self) -> defer.Deferred[None]:
        """Ask it to stop, and kill it if it takes too long. Fires when its process has ended."""
        if self._process is None:
            self._cancel_timer()
            self._become(State.STOPPED)
            return defer.succeed(None)
        if self.state is not State.STOPPING:
            self._become(State.STOPPING)
            self._signal("TERM")
            self._timer = self._clock.callLater(STOP_SECONDS, self._kill)
        stopped: defer.Deferred[None] = defer.Deferred()
        self._stopped.append(stopped)
        return stopped

    def _kill(self) -> None:
        self._timer = None
        self.log.error("broker {name} did not stop in {s} s: killed", name=self.name, s=STOP_SECONDS)
        self._signal("KILL")

    def _signal(self, name: str) -> None:
        assert self._process is not None
        with contextlib.suppress(error.ProcessExitedAlready):  # processEnded follows
            self._process.signalProcess(name)

    def _ended(self, why: str) -> None:
        self.ports, self.why, self._process = {}, why, None
        self._cancel_timer()
        if self.state is State.STOPPING:
            self._become(State.STOPPED)
            waiting, self._stopped = self._stopped, []
            for stopped in waiting:
                stopped.callback(None)
            return
        if self.state is State.READY and self._clock.seconds() - self._ready_at >= STEADY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        self.log.error("broker {name}: {why}; starting again in {s} s", name=self.name, why=why, s=self._pause)
        self._timer = self._clock.callLater(self._pause, self._start_again)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._become(State.WAITING)

    def _start_again(self) -> None:
        self.restarts += 1
        self.start()

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _become(self, state: State) -> None:
        self.state = state
        self._changed(self)

    # IProcessProtocol

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        if childFD == REPORTS:
            self._take_report(data)
        else:
            self._output.receive(data)

    def _take_report(self, data: bytes) -> None:
        self._report = (self._report + data)[:MOST_REPORT_BYTES]
        if self._report.endswith(b"\n") and self.state is State.STARTING:
            self.ports = json.loads(self._report)
            self._ready_at = self._clock.seconds()
            self._become(State.READY)

    def processEnded(self, reason: Failure) -> None:
        self._output.end()
        said = f" ({self._output.last})" if self._output.last and self.state is State.STARTING else ""
        self._ended(_how(reason) + said)


def _how(reason: Failure) -> str:
    ended = reason.value
    if isinstance(ended, error.ProcessTerminated) and ended.signal is not None:
        return f"ended by signal {ended.signal}"
    status = ended.exitCode if isinstance(ended, error.ProcessTerminated) else 0
    return f"ended with status {status}"
