"""The fill level of the disk of a path, measured alike for retention, metrics, commands and the console."""

from __future__ import annotations

import logging
import os

import attrs

logger = logging.getLogger(__name__)

NOT_KNOWN = -1.0


@attrs.frozen
class DiskSpace:
    """The bytes of a file system, from statvfs.

    `free` includes the blocks that are reserved for the superuser; `available` is what `df` shows as Avail.
    """

    total: int
    free: int
    available: int

    @property
    def used(self) -> int:
        return self.total - self.free

    @property
    def used_ratio(self) -> float:
        """The used share of the space for ordinary users, in whole percent rounded up.

        As UtilAll.getDiskPartitionSpaceUsedPercent and `df`. Of 1000 blocks, 250 free and 200 of them available: 750 of 950 are
        used, 0.79. NOT_KNOWN for a file system without blocks.
        """
        entire = self.used + self.available
        return -(-self.used * 100 // entire) / 100 if entire > 0 else NOT_KNOWN


def disk_space(path: str) -> DiskSpace:
    """Return the space of the disk that contains a path. May take long on a network disk. Raises OSError."""
    found = os.statvfs(path)
    block = found.f_frsize
    return DiskSpace(found.f_blocks * block, found.f_bfree * block, found.f_bavail * block)


def used_ratio(path: str) -> float:
    """Return the used ratio of a path's disk, 0.0 to 1.0; if the system does not tell it, log an error and return NOT_KNOWN."""
    try:
        return disk_space(path).used_ratio
    except OSError as error:
        logger.error("disk usage not known: path=%s error=%s", path, error)
        return NOT_KNOWN
