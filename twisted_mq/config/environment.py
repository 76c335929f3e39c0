"""Computes defaults that depend on the machine, as Apache takes them from system properties and the environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable


def in_home(*parts: str) -> Callable[[], str]:
    """Return a default below the user's home directory (Apache: user.home)."""
    return lambda: os.path.join(os.path.expanduser("~"), *parts)


def local_host_name() -> str:
    """Return this machine's name; DEFAULT_BROKER if it has none (Apache: BrokerConfig.localHostName)."""
    return socket.gethostname() or "DEFAULT_BROKER"


def name_servers_of_environment() -> str | None:
    """Return the value of NAMESRV_ADDR, addresses separated by semicolons; None if it is not set."""
    return os.environ.get("NAMESRV_ADDR") or None


def home_of_environment() -> str | None:
    """Return the value of ROCKETMQ_HOME, the folder with conf; None if it is not set."""
    return os.environ.get("ROCKETMQ_HOME") or None
