"""File descriptors as a budget: which files of a store stay mapped.

Python's mappings keep a descriptor each. So a store keeps a bounded number of its files mapped: past it the one that
was mapped first is given back, and mapped again when somebody looks into it. A broker with more queues than descriptors
is slower for those that nobody uses, and serves all.
"""

from __future__ import annotations

from typing import Protocol

from twisted_mq.storage.errors import SHORTAGES
from twisted_mq.storage.files.system_calls import descriptor_limit

FEWEST_MAPPED = 16
_USUAL_MAPPINGS = 65530


class Mapped(Protocol):
    """A file that can give back its mapping."""

    def release(self) -> None:
        """Give it back; views that others hold stay valid."""


class Mappings:
    """The mapped files of one store, of which there are at most `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._files: dict[Mapped, None] = {}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: Mapped) -> None:
        """A file was mapped; past the limit the oldest one is released."""
        self._files[file] = None
        if len(self._files) > self.limit:
            next(iter(self._files)).release()

    def discard(self, file: Mapped) -> None:
        """A file was released."""
        self._files.pop(file, None)


def is_shortage(error: OSError) -> bool:
    """Return whether a file could not be opened for lack of descriptors or memory. Errors of syncing do not count."""
    return error.errno in SHORTAGES and error.filename is not None


def most_mapped() -> int:
    """Return how many files one store may keep mapped: a third of the descriptors, and half of the allowed mappings."""
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            mappings = int(file.read())
    except (OSError, ValueError):
        mappings = _USUAL_MAPPINGS
    return max(FEWEST_MAPPED, min(descriptor_limit() // 3, mappings // 2))
