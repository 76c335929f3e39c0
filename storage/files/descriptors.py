"""Treats file descriptors as a budget: decides which files of a store stay mapped.

Each Python mapping keeps a descriptor. So a store keeps a bounded number of its files mapped: beyond that, the file that
was mapped first is released, and mapped again at its next use. A broker with more queues than descriptors is slower for
idle queues, but serves all.
"""

from __future__ import annotations

from typing import Protocol

from twisted_mq.storage.errors import SHORTAGES
from twisted_mq.storage.files.system_calls import descriptor_limit

FEWEST_MAPPED = 16
_USUAL_MAPPINGS = 65530


class Mapped(Protocol):
    """A file that can release its mapping."""

    def release(self) -> None:
        """Release the mapping; views that others hold stay valid."""


class MappedFiles:
    """The mapped files of one store, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._files: dict[Mapped, None] = {}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: Mapped) -> None:
        """Add a file that was mapped; beyond the limit, release the oldest one."""
        self._files[file] = None
        if len(self._files) > self.limit:
            next(iter(self._files)).release()

    def discard(self, file: Mapped) -> None:
        """Remove a file that was released."""
        self._files.pop(file, None)


def is_shortage(error: OSError) -> bool:
    """Return whether a file could not be opened because descriptors or memory are short. Errors of syncing do not count."""
    return error.errno in SHORTAGES and error.filename is not None


def most_mapped() -> int:
    """Return how many files a store may keep mapped: a third of the descriptors, and half of the allowed mappings."""
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            mappings = int(file.read())
    except (OSError, ValueError):
        mappings = _USUAL_MAPPINGS
    return max(FEWEST_MAPPED, min(descriptor_limit() // 3, mappings // 2))
