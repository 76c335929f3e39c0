"""Contents of a disk after a power cut: all flushed data, and any part of the rest.

`DiskRecorder` replaces fdatasync and fsync. A file's bytes are durable from its own sync on, a name in a directory
from the sync of that directory on (POSIX promises no more). `image` writes a directory as a cut might leave it: every
4 KiB page that changed since is new, old, or torn into sectors of 512 bytes; every name that changed since is there or
not. One order is relied on, which ext4, XFS and Btrfs keep: new names of one directory come in the order of their making
(here: the order of the names), and only the last one's file may have no size yet.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs

Key = TypeVar("Key")
Value = TypeVar("Value")

PAGE_BYTES = 4096
SECTOR_BYTES = 512

Names = dict[str, int]
"""Name in a directory to inode."""


@attrs.frozen
class Fate:
    """Probability that an unflushed page or name is on the disk; a page may be there in part."""

    page_present: float
    page_torn: float
    name_changed: float

    def made(self, count: int, source: random.Random) -> int:
        """Return how many of this many new names are there."""
        return round(count * self.name_changed) if self.name_changed in (0, 1) else source.randint(0, count)

    @classmethod
    def of(cls, source: random.Random) -> Fate:
        """Often nothing or all of what was not flushed, else a mixture."""
        return source.choice(
            (cls(0, 0, 0), cls(1, 0, 1), cls(1, 0, 0), cls(0, 0, 1), cls(0.5, 0.2, 0.5), cls(0.2, 0.6, 0.8))
        )


class DiskRecorder:
    """Watches one directory tree from its present, durable state on. `before_sync` is called first in each sync."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before_sync: Callable[[], None] = lambda: None
        self._data: dict[int, bytes] = {}
        self._names: dict[Path, Names] = {}
        self._held: dict[int, int] = {}
        self._captures = 0
        self._newest: dict[int, int] = {}
        self._sync_tree()
        self._names.setdefault(root.parent, {})[root.name] = 0

    def _sync_tree(self) -> None:
        for directory, _, files in os.walk(self.root):
            self._sync_path(Path(directory))
            for name in files:
                self._sync_path(Path(directory, name))

    def _sync_path(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            self._record(descriptor)
        finally:
            os.close(descriptor)

    def sync(self, descriptor: int) -> None:
        """Instead of os.fdatasync and os.fsync; any thread."""
        self.before_sync()
        self._record(descriptor)

    def sync_file_systems(self, directories: Collection[str]) -> bool:
        """Instead of syncfs."""
        self.before_sync()
        self._sync_tree()
        return True

    def _record(self, descriptor: int) -> None:
        self.capture(descriptor)()

    def capture(self, descriptor: int) -> Callable[[], None]:
        """Record the present contents; calling the returned function makes them durable."""
        status = os.fstat(descriptor)
        if status.st_ino not in self._held:  # an inode number that is watched must not be used anew
            self._held[status.st_ino] = os.dup(descriptor)
        self._captures += 1
        if stat.S_ISDIR(status.st_mode):
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            return partial(self._keep, status.st_ino, self._captures, self._names, path, _names_in(path))
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            return partial(self._keep, status.st_ino, self._captures, self._data, status.st_ino, file.read())

    def _keep(self, inode: int, capture: int, kept: dict[Key, Value], key: Key, value: Value) -> None:
        """A sync that began later may have ended before."""
        if capture > self._newest.get(inode, 0):
            self._newest[inode] = capture
            kept[key] = value

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def image(self, target: Path, source: random.Random) -> None:
        """Write into `target` what a power cut at this moment leaves."""
        self._directory(self.root, target, Fate.of(source), source)

    def _directory(self, path: Path, target: Path, fate: Fate, source: random.Random) -> None:
        target.mkdir()
        durable, current = self._names.get(path, {}), _names_in(path) if path.exists() else {}
        made = sorted(current.keys() - durable.keys())
        kept = made[: fate.made(len(made), source)]
        lost, last_made = set(made) - set(kept), kept[-1] if kept else ""
        for name in sorted(current.keys() - lost):
            if name in durable and durable[name] != current[name] and source.random() >= fate.name_changed:
                self._old(path / name, target / name, durable[name])
            elif (path / name).is_dir():
                self._directory(path / name, target / name, fate, source)
            else:
                self._file(path / name, target / name, name == last_made, fate, source)
        for name in sorted(durable.keys() - current.keys()):
            if source.random() >= fate.name_changed:
                self._old(path / name, target / name, durable[name])

    def _old(self, path: Path, target: Path, inode: int) -> None:
        """A name that was replaced or removed, but not on the disk."""
        if inode in self._data:
            target.write_bytes(self._data[inode])
        elif path in self._names:
            self._directory(path, target, Fate(0, 0, 0), random.Random(0))

    def _file(self, path: Path, target: Path, last_made: bool, fate: Fate, source: random.Random) -> None:
        new, old = path.read_bytes(), self._data.get(path.stat().st_ino)
        if old is None:
            old = b"" if last_made and source.random() >= fate.page_present else bytes(len(new))
            new = new if old else b""
        target.write_bytes(_torn(old, new, fate, source))


def _names_in(path: Path) -> Names:
    with os.scandir(path) as entries:
        return {entry.name: entry.inode() for entry in entries}


def _torn(old: bytes, new: bytes, fate: Fate, source: random.Random) -> bytes:
    """A file between two states, page by page."""
    if old == new:
        return new
    old = old.ljust(len(new), b"\0")
    starts = range(0, max(len(new), len(old)), PAGE_BYTES)
    return b"".join(_page(old[at : at + PAGE_BYTES], new[at : at + PAGE_BYTES], fate, source) for at in starts)


def _page(old: bytes, new: bytes, fate: Fate, source: random.Random) -> bytes:
    if old == new:
        return new
    chance = source.random()
    if chance < fate.page_torn:
        sectors = range(0, max(len(new), len(old)), SECTOR_BYTES)
        return b"".join(source.choice((old, new))[at : at + SECTOR_BYTES] for at in sectors)
    return new if chance < fate.page_torn + (1 - fate.page_torn) * fate.page_present else old
