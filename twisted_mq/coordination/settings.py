"""Defines how a client reaches its coordinator, and the clock of its lease."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import attrs

from twisted_mq.coordination.address import CoordinatorAddress

DEFAULT_SESSION_SECONDS = 6.0
CONNECT_SECONDS = 10.0


@attrs.frozen
class CoordinatorSettings:
    """Settings of a client. `auth` is USER:PASSWORD of ZooKeeper's digest scheme; only clients with it can read and
    change the nodes that it creates.

    `ca_file` turns TLS on: the servers' certificates are verified with it, and have to name the hosts of the address.
    Certificate and key, all in PEM, are the client's own, for servers that ask for one.
    """

    address: CoordinatorAddress
    session_seconds: float = DEFAULT_SESSION_SECONDS
    auth: str = attrs.field(default="", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    connect_seconds: float = CONNECT_SECONDS
    """The time that a start tries."""

    def __attrs_post_init__(self) -> None:
        """Check the settings. Raises ValueError, never with the password in it."""
        if self.auth and not all(self.auth.partition(":")):
            raise ValueError("orderCoordinatorAuth must be USER:PASSWORD")
        if bool(self.certificate_file) != bool(self.key_file) or (self.certificate_file and not self.ca_file):
            raise ValueError("the coordinator's certificate file needs a key file and a CA file, and the reverse")


def _through_pauses() -> Callable[[], float]:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic if clock is None else partial(time.clock_gettime, clock)


boot_seconds = _through_pauses()
"""Seconds that never go back, and that count while the process or, if the system can tell, the machine is paused."""
