"""The client id on the wire: `ip@pid#nanoseconds`, with `@unit` if a unit is set (Apache: ClientConfig.buildMQClientId)."""

from __future__ import annotations

import itertools
import os
import socket
import time

_made = itertools.count()


def local_ip() -> str:
    """Return the address of the default interface; 127.0.0.1 on a machine without a network. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def unique_instance_name() -> str:
    """Return a name that no other client has, in this process or on this machine."""
    return f"{os.getpid()}#{time.monotonic_ns() + next(_made)}"


def client_id(ip: str, instance_name: str, unit_name: str = "") -> str:
    return f"{ip}@{instance_name}" + (f"@{unit_name}" if unit_name else "")
