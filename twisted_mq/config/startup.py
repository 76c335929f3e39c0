"""How a daemon says why it does not start: one line for a person, exit status 1."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType

from twisted.application import service

from twisted_mq.logs import Logger

log = Logger()

ALL_ADDRESSES = ("0.0.0.0", "::", "")


class DoesNotStart(Exception):
    """A daemon that cannot start, and why. In the background twistd hands its text to the waiting parent process."""


class Daemon(service.MultiService):
    """The root of a daemon's services. An expected error of their start stops what had started and ends the process.

    `expected` are the error classes whose text is meant for a person; all others keep their traceback.
    """

    log = Logger()

    def __init__(
        self, name: str, expected: tuple[type[Exception], ...], bind_address: str, umask: int | None = None
    ) -> None:
        """`umask` holds from the start on, where it is one: what the process writes is nobody else's."""
        super().__init__()
        self._umask = umask
        self._name = name
        self._expected = expected
        self._bind_address = bind_address

    def privilegedStartService(self) -> None:
        if self._umask is not None:
            os.umask(self._umask)
        self._explained(super().privilegedStartService)

    def startService(self) -> None:
        self._explained(super().startService)
        warn_if_open(self._bind_address)

    def _explained(self, start: Callable[[], None]) -> None:
        try:
            start()
        except self._expected as error:
            self.stopService()
            self.log.critical("{name} does not start: {error}", name=self._name, error=error)
            sys.excepthook = print_reason
            raise DoesNotStart(f"{self._name}: {error}") from error


def warn_if_open(bind_address: str, setting: str = "bindAddress") -> None:
    """One line where strangers may reach a port: nobody is asked who he is."""
    if bind_address in ALL_ADDRESSES:
        log.warn(
            "open to everybody: listens on all addresses ({address}) and has no accounts, so whoever reaches a port may "
            "read, write and change everything; {setting} or a firewall keeps strangers out",
            address=bind_address,
            setting=setting,
        )


def print_reason(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An excepthook that leaves the traceback out of DoesNotStart. twistd knows no other way to end with status 1,
    tell its parent process and remove its pid file: SystemExit would leave the parent waiting."""
    if isinstance(error, DoesNotStart):
        print(error, file=sys.__stderr__)
    else:
        sys.__excepthook__(kind, error, trace)
