"""Makes the text of `--version`."""

from __future__ import annotations

COMPATIBLE_WITH = "Apache RocketMQ 5.3.3"


def installed_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version

    return version("rocketmq-twisted")


def version_line(command: str) -> str:
    """Return one line, read from the installed package."""
    return f"{command} {installed_version()}, compatible with {COMPATIBLE_WITH}"
