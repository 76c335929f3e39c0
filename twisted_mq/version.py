"""What `--version` prints."""

from __future__ import annotations

COMPATIBLE_WITH = "Apache RocketMQ 5.3.3"


def version_line(command: str) -> str:
    """One line, read from the installed package."""
    from importlib.metadata import version

    return f"{command} {version('rocketmq-twisted')}, compatible with {COMPATIBLE_WITH}"
