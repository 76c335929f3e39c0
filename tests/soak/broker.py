"""`python -m tests.soak.broker STORE twistd's arguments`: a daemon whose disk is full from SIGUSR1 to SIGUSR2."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.support.faulty_disk import FaultyDisk
from twisted_mq.storage.files import system_calls


def main() -> None:
    """Takes the place of the system's calls before the modules are imported that have them as defaults."""
    disk = FaultyDisk(Path(sys.argv.pop(1)), pytest.MonkeyPatch())
    system_calls.posix_fallocate, system_calls.fdatasync = disk.allocate, disk.sync
    signal.signal(signal.SIGUSR1, lambda *_: disk.fill())
    signal.signal(signal.SIGUSR2, lambda *_: disk.heal())
    from twisted.scripts.twistd import run

    run()


if __name__ == "__main__":
    main()
