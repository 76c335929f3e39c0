"""The disks of all hosts: real files, whose syncs take virtual time, and what a power cut leaves of them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.simulation.threads import VirtualThreads
from tests.support.power_cut import DiskRecorder

USUALLY_USED = 0.25


class Disk:
    """A host's disk below `folder`. `latency` is the range of a sync's seconds."""

    def __init__(self, folder: Path, source: random.Random) -> None:
        self.latency = self.usual_latency = source.choice(((0.0005, 0.005), (0.005, 0.05)))
        self.threads: VirtualThreads | None = None
        self.used = USUALLY_USED
        """Used ratio, 0.0 to 1.0."""
        self.was_scarce = False
        """True if files may have been deleted to free space."""
        self.in_next_sync: Callable[[], None] | None = None
        """Called once, in the middle of the next sync."""
        self.in_a_sync_of = ""
        """The folder whose file that sync is of; empty for any."""
        self._folder = folder
        self._random = source
        self._life = 0
        self.root.mkdir(parents=True)
        self._recorder = DiskRecorder(self.root)

    @property
    def root(self) -> Path:
        """Return the folder of this life's files: another one after a power cut."""
        return self._folder / str(self._life)

    def sync(self, descriptor: int) -> None:
        """Sync a file: its contents at the begin are durable at the end."""
        done = self._recorder.capture(descriptor)
        if self.threads is not None:
            seconds = self._random.uniform(*self.latency)
            if self.in_next_sync is not None and self._is_of(descriptor, self.in_a_sync_of):
                self.threads.host.network.clock.callLater(seconds / 2, self.in_next_sync)
                self.in_next_sync = None
            self.threads.sleep(seconds)
        done()

    def _is_of(self, descriptor: int, folder: str) -> bool:
        return not folder or Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent.name == folder

    def cut_power(self) -> None:
        """Lose what was not synced, or a part of it."""
        old = self.root
        self._life += 1
        self._recorder.image(self.root, self._random)
        self._recorder.close()
        shutil.rmtree(old)
        self._recorder = DiskRecorder(self.root)

    def wipe(self) -> None:
        """Another, empty disk."""
        self._recorder.close()
        shutil.rmtree(self.root)
        self._life += 1
        self.root.mkdir()
        self._recorder = DiskRecorder(self.root)

    def watch(self) -> None:
        """All that is there now is durable."""
        self._recorder.close()
        self._recorder = DiskRecorder(self.root)

    def close(self) -> None:
        self._recorder.close()


BLOCKS = 4_000_000
"""The size of a simulated disk in blocks of 4 KiB."""


@contextmanager
def in_place_of_real_ones(find: Callable[[str], Disk | None]) -> Iterator[None]:
    """Meanwhile os.fsync, os.fdatasync and os.statvfs are those of the simulated disks; `find` says whose a path is."""

    def sync(descriptor: int) -> None:
        disk = find(os.readlink(f"/proc/self/fd/{descriptor}"))
        if disk is not None:
            disk.sync(descriptor)

    def space(path: str) -> os.statvfs_result:
        disk = find(path)
        if disk is None:
            return statvfs(path)
        free = int(BLOCKS * (1.0 - disk.used))
        return os.statvfs_result((4096, 4096, BLOCKS, free, free, BLOCKS, free, free, 0, 255))

    fsync, fdatasync, statvfs = os.fsync, os.fdatasync, os.statvfs
    os.fsync = os.fdatasync = sync
    os.statvfs = space
    try:
        yield
    finally:
        os.fsync, os.fdatasync, os.statvfs = fsync, fdatasync, statvfs
