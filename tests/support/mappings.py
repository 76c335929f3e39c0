"""Flags of this process's mappings of files in the kernel."""

from __future__ import annotations

import re
from pathlib import Path


def read_at_random(directory: Path) -> list[bool]:
    """Return for each mapping of a file below a folder if its pages are read at random (rr in VmFlags)."""
    entries = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    return [" rr " in entry.partition("VmFlags:")[2] for entry in entries if f" {directory}/" in entry]
