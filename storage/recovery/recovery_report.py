"""A report of the findings and repairs of a start."""

from __future__ import annotations

import logging

import attrs

logger = logging.getLogger(__name__)


@attrs.frozen
class RecoveryAction:
    """A repair: the file or directory, the offset in it, and a sentence that says what was wrong and what was done."""

    path: str
    offset: int
    done: str

    def __str__(self) -> str:
        return f"{self.path} at {self.offset}: {self.done}"


@attrs.define
class RecoveryReport:
    """The findings of a start. `clean` is False if the last broker did not close the store."""

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
