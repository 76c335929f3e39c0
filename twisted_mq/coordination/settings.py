"""How a client reaches its coordinator, and the clock that its lease runs by."""

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
    """`auth` is USER:PASSWORD of ZooKeeper's digest scheme; who has it alone reads and changes what it creates.

    `ca_file` turns TLS on: the servers' certificates are verified with it, and have to name the hosts of the address.
    Certificate and key, all in PEM, are the client's own where the servers ask for one.
    """

    address: CoordinatorAddress
    session_seconds: float = DEFAULT_SESSION_SECONDS
    auth: str = attrs.field(default="", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    connect_seconds: float = CONNECT_SECONDS
    """How long a start tries."""

    def __attrs_post_init__(self) -> None:
        """Raises ValueError for what can't work, never with the password in it."""
        if self.auth and not all(self.auth.partition(":")):
            raise ValueError("orderCoordinatorAuth is not USER:PASSWORD")
        if bool(self.certificate_file) != bool(self.key_file) or (self.certificate_file and not self.ca_file):
            raise ValueError("the coordinator's certificate file needs a key file and a CA file, and the reverse")


def _through_pauses() -> Callable[[], float]:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic if clock is None else partial(time.clock_gettime, clock)


boot_seconds = _through_pauses()
"""Seconds that never go back and count while the process or, where the system can tell, the machine stands still."""
