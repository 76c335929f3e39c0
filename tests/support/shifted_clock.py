"""Shifts and stops the clocks of a process under test while it runs.

`shifted_clock.c` beside this file is compiled with gcc and loaded into the process with LD_PRELOAD; where gcc is missing,
the test is skipped. A clock that is thawed goes on from where it stood, as in a virtual machine that was suspended.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import time
import unittest
from pathlib import Path

import attrs

SOURCE = Path(__file__).with_suffix(".c")

CLOCKS = ("realtime", "monotonic", "boottime")
"""In the order of the control file."""

_KERNEL = {
    "realtime": time.CLOCK_REALTIME,
    "monotonic": time.CLOCK_MONOTONIC,
    "boottime": getattr(time, "CLOCK_BOOTTIME", 7),
}
_NUMBER = struct.Struct("=q")
_NANOSECONDS = 1_000_000_000


@attrs.define
class _Clock:
    """A clock of the control file: how far it is ahead of the kernel's clock, and the time at which it is stopped."""

    kernel: int
    control: mmap.mmap
    place: int
    offset: int = 0
    stands_at: int = 0

    def shift(self, nanoseconds: int) -> None:
        self.offset += nanoseconds
        self.stands_at += nanoseconds if self.stands_at else 0
        self._write()

    def freeze(self) -> None:
        if not self.stands_at:
            self.stands_at = time.clock_gettime_ns(self.kernel) + self.offset
            self._write()

    def thaw(self) -> None:
        if self.stands_at:
            self.offset, self.stands_at = self.stands_at - time.clock_gettime_ns(self.kernel), 0
            self._write()

    def _write(self) -> None:
        """The offset first: it counts only once the clock runs."""
        _NUMBER.pack_into(self.control, self.place, self.offset)
        _NUMBER.pack_into(self.control, self.place + _NUMBER.size, self.stands_at)


class ShiftedClock:
    """The clocks of the processes that are started with `environment`. `folder` takes the library and the control file."""

    def __init__(self, folder: Path) -> None:
        if os.uname().sysname != "Linux":
            raise unittest.SkipTest("clocks are shifted on Linux alone")
        compiler = shutil.which("gcc")
        if compiler is None:
            raise unittest.SkipTest("gcc is missing: it builds the library that shifts a process's clocks")
        folder.mkdir(parents=True, exist_ok=True)
        self._library = folder / "shifted_clock.so"
        self._path = folder / "shifted_clock"
        command = [
            compiler,
            "-O1",
            "-Wall",
            "-Werror",
            "-shared",
            "-fPIC",
            "-o",
            self._library,
            SOURCE,
            "-ldl",
            "-pthread",
        ]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise RuntimeError(built.stderr)
        self._path.write_bytes(bytes(2 * _NUMBER.size * len(CLOCKS)))
        with self._path.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), 0)
        self._clocks = {
            name: _Clock(_KERNEL[name], self._control, 2 * _NUMBER.size * row) for row, name in enumerate(CLOCKS)
        }

    def environment(self) -> dict[str, str]:
        """Return the variables that a process has to be started with, in addition to its others."""
        return {"LD_PRELOAD": str(self._library), "SHIFTED_CLOCK": str(self._path)}

    def shift_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back where `seconds` is negative."""
        self._clocks["realtime"].shift(round(seconds * _NANOSECONDS))

    def freeze(self, *, monotonic: bool = True, boottime: bool = True, realtime: bool = False) -> None:
        """Stop clocks where they are now."""
        wanted = {"realtime": realtime, "monotonic": monotonic, "boottime": boottime}
        for name, clock in self._clocks.items():
            if wanted[name]:
                clock.freeze()

    def thaw(self) -> None:
        """Let all clocks run again, from where they stood."""
        for clock in self._clocks.values():
            clock.thaw()
