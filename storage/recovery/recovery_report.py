"""What a start found and did."""

from __future__ import annotations

import logging

import attrs

logger = logging.getLogger(__name__)


@attrs.frozen
class RecoveryAction:
    """One thing that was wrong and what was done: the file or directory, the offset in it, and a sentence."""

    path: str
    offset: int
    done: str

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}: {self.done}"


@attrs.define
class RecoveryReport:
    """What a start found. `clean` is False where the last broker did not close the store."""

    clean: bool
    scan_start: int = 0
    end_offset: int = 0
    records_checked: int = 0
    entries_written: int = 0
    actions: list[RecoveryAction] = attrs.field(factory=list)

    def add(self, path: str, offset: int, done: str) -> None:
        """Record and log one action."""
        action = RecoveryAction(path, offset, done)
        self.actions.append(action)
        logger.warning("recovery: %s", action)
