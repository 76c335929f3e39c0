"""Starts daemons. A daemon that does not start says why: one line for a person, exit status 1."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType

from twisted.application import service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import ILogObserver
from twisted.python.components import Componentized

from twisted_mq.clocks import follow_monotonic_time
from twisted_mq.config.daemon_log import DaemonLog, daemon_log, observer
from twisted_mq.config.garbage import LOOK_SECONDS, GarbageLooks
from twisted_mq.config.hang_up import on_hang_up
from twisted_mq.freed_memory import keep_freed_memory
from twisted_mq.logs import Logger, complain_seldom, tell_left_out
from twisted_mq.periodic import PeriodicJob

log = Logger()

ALL_ADDRESSES = ("0.0.0.0", "::", "")
FLUSH_SECONDS = 10.0
"""The interval at which left out log lines are reported if nothing else is written."""
SWITCH_SECONDS = 0.0005
"""The time after which a thread hands the interpreter over (Python's own: 5 ms). The reactor releases it at each system
call, and waits this long to get it back while a thread parses or writes a large body: otherwise only a few hundred calls
a second are possible.
"""


class DoesNotStart(Exception):
    """Raised when a daemon cannot start, with the reason. In the background, twistd passes its text to the waiting parent
    process.
    """


class Daemon(service.MultiService):
    """The root of a daemon's services. An expected error at their start stops those that had started and ends the process.

    `expected` are the error classes whose text is for a person; all others keep their traceback.
    Without a `bind_address` there is no warning that strangers may reach it.
    """

    log = Logger()

    def __init__(
        self,
        name: str,
        expected: tuple[type[Exception], ...],
        bind_address: str | None,
        umask: int | None = None,
        log_path: str | None = None,
        reactor: IReactorTime | None = None,
        *,
        json_log: bool = False,
        to_stdout: bool = False,
    ) -> None:
        """Create a daemon. `umask`, if given, applies from the start on, so that other users cannot read its files.

        twistd's log goes to the file `log_path`, if it goes to a file. SIGHUP reopens that, or stops the reactor.
        With `json_log` its lines are JSON, and with `to_stdout` those on standard output, too.
        """
        super().__init__()
        self._umask = umask
        self._log_path = log_path
        self._log_file: DaemonLog | None = None
        self._reactor = reactor
        self._json_log = json_log
        self._to_stdout = to_stdout
        self._name = name
        self._expected = expected
        self._bind_address = bind_address
        self._log_flush: PeriodicJob | None = None
        self._thaw: PeriodicJob | None = None
        self._garbage = GarbageLooks(time.monotonic if reactor is None else reactor.seconds)
        if reactor is not None:
            follow_monotonic_time(reactor)

    def setServiceParent(self, parent: service.IServiceCollection) -> None:
        super().setServiceParent(parent)
        if not isinstance(parent, Componentized):
            return
        complain_seldom()
        if self._log_path is not None:
            self._own_files()
            self._log_file = daemon_log(self._log_path)
            parent.setComponent(ILogObserver, observer(self._log_file, as_json=self._json_log))
        elif self._to_stdout:
            parent.setComponent(ILogObserver, observer(sys.stdout, as_json=self._json_log))

    def _own_files(self) -> None:
        if self._umask is not None:
            os.umask(self._umask)

    def privilegedStartService(self) -> None:
        self._own_files()
        self._explained(super().privilegedStartService)

    def startService(self) -> None:
        if self._reactor is not None:  # before a part reports that it is ready
            self._log_flush = PeriodicJob("count of lines left out", self._reactor, FLUSH_SECONDS, tell_left_out)
            on_hang_up(self._reactor, self._log_file.reopen if self._log_file is not None else None)
        sys.setswitchinterval(SWITCH_SECONDS)
        self._explained(super().startService)
        keep_freed_memory()
        if self._bind_address is not None:
            warn_if_open(self._bind_address)
        self._garbage.start()
        if self._reactor is not None:
            self._thaw = PeriodicJob("look for garbage", self._reactor, LOOK_SECONDS, self._garbage.look_at_all)

    def stopService(self) -> Deferred[object] | None:
        self._garbage.stop()
        for job in (self._log_flush, self._thaw):
            if job is not None:
                job.stop()
        self._log_flush = self._thaw = None
        stopped: Deferred[object] | None = super().stopService()
        return stopped

    def _explained(self, start: Callable[[], None]) -> None:
        try:
            start()
        except self._expected as error:
            self.stopService()
            self.log.critical("{name} does not start: {error}", name=self._name, error=error)
            sys.excepthook = print_reason
            raise DoesNotStart(f"{self._name}: {error}") from error


def warn_if_open(bind_address: str, setting: str = "bindAddress") -> None:
    """Log one line if strangers can reach a port that does not authenticate."""
    if bind_address in ALL_ADDRESSES:
        log.warn(
            "open to every host: listens on all addresses ({address}) and has no accounts, so any client may read, write and "
            "change everything; use {setting} or a firewall to prevent this",
            address=bind_address,
            setting=setting,
        )


def print_reason(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of any exception except DoesNotStart: an excepthook. twistd has no other way to end with status 1,
    inform its parent process and remove its pid file: SystemExit would leave the parent waiting.
    """
    if isinstance(error, DoesNotStart):
        print(error, file=sys.__stderr__)
    else:
        sys.__excepthook__(kind, error, trace)
