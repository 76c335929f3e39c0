"""The disk of the broker's store, which fills up and gets space again while the broker runs."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path
from typing import Protocol

from interop.peers.process import Process

BLOCK = bytes(1 << 20)


class Disk(Protocol):
    """Disk of the store, and a way to fill it."""

    name: str

    def fill(self) -> None:
        """From now on nothing more can be stored."""

    def drain(self) -> None:
        """There is space again."""

    def close(self) -> None:
        """Nothing of it is left."""


def small_disk(place: Path) -> SmallDisk | None:
    """Mounted at `place`; None where this process may not mount."""
    try:
        return SmallDisk(place)
    except (OSError, subprocess.CalledProcessError):
        return None


class SmallDisk:
    """A file system in memory, mounted at `place`; a large file fills it up."""

    def __init__(self, place: Path, size_mib: int = 2048) -> None:
        """Raises OSError, CalledProcessError where this process may not mount."""
        self._place = place
        self.name = f"a file system of {size_mib} MiB, filled by another file"
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(place)]
        subprocess.run(mount, check=True, capture_output=True)

    @property
    def _ballast(self) -> Path:
        return self._place / "ballast"

    def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while file.write(BLOCK) == len(BLOCK):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def drain(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", str(self._place)], check=True)


class SimulatedDisk:
    """The broker's calls of the system fail with ENOSPC between two signals, see tests.soak.broker."""

    name = "simulated, the broker's calls of the system fail"

    def __init__(self, broker: Process) -> None:
        self._broker = broker

    def fill(self) -> None:
        os.kill(self._broker.child.pid, signal.SIGUSR1)

    def drain(self) -> None:
        os.kill(self._broker.child.pid, signal.SIGUSR2)

    def close(self) -> None:
        """Release nothing: this disk uses nothing outside of the broker's process."""
