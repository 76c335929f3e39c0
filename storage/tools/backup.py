"""Copies the store of a running broker, and makes a store from such a copy.

Data that may lag behind the log is copied first (offsets, the timer's log), then the log up to its last proved record, then
data that may be ahead of it (topics, groups, accounts). Full files of the log change no more: they are linked. Queues and
index are built from the copied log. The copy has every message acknowledged before it began, as far as the broker had
written it into its log files (transientStorePoolEnable writes them later).

<backup>/backup.json   BackupManifest
<backup>/...           a store that no broker has used
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator

import attrs
import msgspec

from twisted_mq.protocol.layouts.record import read_mark
from twisted_mq.storage.columns.walk import LogFiles
from twisted_mq.storage.errors import NoStore, StoreError
from twisted_mq.storage.files.directory import sync_directory, sync_tree
from twisted_mq.storage.files.files_at_rest import FileAtRest, files_in
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.log.log_scan import LogScan
from twisted_mq.storage.tools.index_rebuild import IndexRebuild, usual_sizes
from twisted_mq.storage.tools.index_tools import index_files
from twisted_mq.storage.tools.json_files import json_bytes
from twisted_mq.storage.tools.queue_check import LIGHT_QUEUES
from twisted_mq.storage.tools.rebuild import QueueRebuild
from twisted_mq.storage.tools.verify import VerifyReport, verify

Advance = Callable[[int], None]

MANIFEST = "backup.json"
DERIVED = frozenset(
    {
        "commitlog",
        "consumequeue",
        "batchconsumequeue",
        "consumequeue_ext",
        "index",
        "damaged",
        "rebuilding",
        "timerwheel",
    }
    | {"abort", "lock", "checkpoint", "config", MANIFEST}
)
"""Entries of a store's directory that are not copied as they are: handled separately, rebuilt, or useless in a copy."""
AHEAD = ("topics.json", "subscriptionGroup.json", "topicQueueMapping.json", "access.json")
"""Tables that must know everything that is in the log: copied once more after it."""
NOBODY_ELSE = 0o077
_CHUNK = 1 << 20


class BackupManifest(msgspec.Struct, frozen=True):
    """The contents of a backup. `end_offset` is the end of the last record. Files: relative path -> SHA-256 of the bytes."""

    source: str
    made_ms: int
    min_offset: int
    end_offset: int
    messages: int
    files: dict[str, str]


class NotEmpty(StoreError):
    """The target directory of a copy is not empty."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "the directory is not empty; use an empty or a new directory")


class NoBackup(StoreError):
    """Raised when a backup is missing, incomplete or changed."""


@attrs.frozen
class BackupReport:
    """The result of a backup or restore, with the findings about the copy."""

    directory: str
    manifest: BackupManifest
    found: VerifyReport
    linked: int
    copied_bytes: int


@attrs.define
class Copier:
    """Copies into one directory. With `links`, files that change no more share their bytes if the file system allows it."""

    links: bool
    advance: Advance
    linked: int = 0
    copied_bytes: int = 0

    def finished(self, path: str, target: str) -> None:
        """Link or copy a file that changes no more."""
        if self.links:
            try:
                os.link(path, target)
            except FileNotFoundError:
                return  # it had expired
            except OSError:
                self.links = False
            else:
                self.linked += 1
                self.advance(os.path.getsize(path))
                return
        self.whole(path, target)

    def whole(self, path: str, target: str) -> None:
        """Copy a file as it is now."""
        self.beginning(path, target, os.path.getsize(path), os.path.getsize(path))

    def beginning(self, path: str, target: str, length: int, size: int) -> None:
        """Copy the first `length` bytes of a file of `size` bytes. The rest becomes a hole, and so do runs of zeros."""
        with open(path, "rb") as source, open(target, "xb") as made:
            left = length
            while left and (chunk := source.read(min(left, _CHUNK))):
                if chunk.count(0) == len(chunk):
                    made.seek(len(chunk), os.SEEK_CUR)
                else:
                    made.write(chunk)
                left -= len(chunk)
                self.copied_bytes += len(chunk)
                self.advance(len(chunk))
            made.truncate(size)

    def tree(self, path: str, target: str) -> None:
        """Copy a file, or a directory with all files below it; skip files that disappear meanwhile."""
        if os.path.isfile(path):
            self._one(path, target)
            return
        for folder, _, names in os.walk(path):
            place = os.path.join(target, os.path.relpath(folder, path))
            os.makedirs(place, exist_ok=True)
            for name in names:
                self._one(os.path.join(folder, name), os.path.join(place, name))

    def _one(self, path: str, target: str) -> None:
        try:
            if os.path.lexists(target):
                os.unlink(target)
            self.whole(path, target)
        except FileNotFoundError:
            return


def back_up(
    root: str,
    target: str,
    commit_log: str | None,
    now_ms: int,
    *,
    links: bool = True,
    advance: Advance = lambda amount: None,
) -> BackupReport:
    """Copy the store at `root`, whose broker may be running, into an empty or missing directory.

    The copy is complete and sound, or does not exist. Raises NoStore, NotEmpty, StoreError, OSError.
    """
    paths = StorePaths(root, commit_log)
    if not os.path.isdir(paths.commit_log):
        raise NoStore(root)
    with _Whole(target) as made:
        copier = Copier(links, advance)
        end_offset = _copy(paths, StorePaths(made), copier)
        _derive(paths, StorePaths(made))
        found = _sound(made, root)
        manifest = BackupManifest(
            os.path.abspath(root), now_ms, found.min_offset, end_offset, found.messages, dict(_sums(made))
        )
        with open(os.path.join(made, MANIFEST), "wb") as file:
            file.write(json_bytes(msgspec.structs.asdict(manifest)))
    return BackupReport(target, manifest, found, copier.linked, copier.copied_bytes)


def restore(backup: str, target: str, *, advance: Advance = lambda amount: None) -> BackupReport:
    """Make a store from a backup in an empty or missing directory; the backup is kept.

    Raises NoBackup if a file was changed, NotEmpty, StoreError, OSError.
    """
    manifest = read_manifest(backup)
    with _Whole(target) as made:
        copier = Copier(False, advance)
        for name, digest in manifest.files.items():
            place = os.path.join(made, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            copier.whole(os.path.join(backup, name), place)
            if _sum(place) != digest:
                raise NoBackup(os.path.join(backup, name), "has changed since the backup was made")
        found = _sound(made, backup)
    return BackupReport(target, manifest, found, 0, copier.copied_bytes)


def read_manifest(backup: str) -> BackupManifest:
    """Return the manifest of a backup. Raises NoBackup, also for paths outside of the backup."""
    path = os.path.join(backup, MANIFEST)
    try:
        with open(path, "rb") as file:
            manifest = msgspec.convert(json.loads(file.read()), BackupManifest)
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no JSON, no UTF-8, no manifest
        raise NoBackup(path, f"not a backup made by `mq backup`: {error}") from None
    strange = [name for name in manifest.files if os.path.isabs(name) or ".." in name.split("/")]
    if strange:
        raise NoBackup(path, f"has a file outside of the backup: {strange[0]}")
    return manifest


def size_of(backup: str) -> int:
    """Return the total length of its files; holes count, missing files do not. Raises NoBackup."""
    paths = (os.path.join(backup, name) for name in read_manifest(backup).files)
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


class _Whole:
    """A directory that gets its final name on success and is deleted otherwise."""

    def __init__(self, target: str) -> None:
        self._target = os.path.abspath(target)
        self._partial = f"{self._target}.partial"
        self._umask = 0

    def __enter__(self) -> str:
        if os.path.exists(self._target) and (not os.path.isdir(self._target) or os.listdir(self._target)):
            raise NotEmpty(self._target)
        if os.path.exists(self._partial):
            raise NotEmpty(self._partial)
        self._umask = os.umask(NOBODY_ELSE)
        os.makedirs(self._partial)
        return self._partial

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.umask(self._umask)
        if error is not None:
            shutil.rmtree(self._partial, ignore_errors=True)
            return
        sync_tree(self._partial)
        os.replace(self._partial, self._target)
        sync_directory(os.path.dirname(self._target))


def _copy(paths: StorePaths, made: StorePaths, copier: Copier) -> int:
    """Copy everything and return the offset after the copy's last record."""
    for folder in (made.commit_log, made.consume_queues, made.index, made.config):
        os.makedirs(folder)
    copier.tree(paths.config, made.config)
    for name in sorted(os.listdir(paths.root)):
        if name not in DERIVED:
            copier.tree(os.path.join(paths.root, name), os.path.join(made.root, name))
    for topic in {topic for topic, _ in paths.queue_directories() if topic.startswith(LIGHT_QUEUES)}:
        copier.tree(os.path.join(paths.consume_queues, topic), os.path.join(made.consume_queues, topic))
    end_offset = _copy_log(paths.commit_log, made.commit_log, copier)
    for name in AHEAD:
        if os.path.exists(os.path.join(paths.config, name)):
            copier.tree(os.path.join(paths.config, name), os.path.join(made.config, name))
    return end_offset


def _copy_log(source: str, target: str, copier: Copier) -> int:
    """Link or copy the full files, and copy the one that is written to up to its last proved record."""
    files = [file for file in files_in(source) if _is_begun(file)]
    for file in files[:-1]:
        copier.finished(file.path, os.path.join(target, os.path.basename(file.path)))
    if not files:
        return 0
    last = files[-1]
    scan = LogScan([FileAtRest(last.path, last.first_offset, last.size)], last.first_offset)
    for _ in scan.parts():
        pass
    length = scan.end_offset - last.first_offset
    copier.beginning(last.path, os.path.join(target, os.path.basename(last.path)), length, last.size)
    return scan.end_offset


def _is_begun(file: FileAtRest) -> bool:
    """Return whether anything was written into the file: brokers make files in advance."""
    return any(read_mark(file.readable, 0))


def _derive(paths: StorePaths, made: StorePaths) -> None:
    """Build queues and index of the copied log, with the topics and file sizes of the source store."""
    files = LogFiles(paths.root, made.commit_log)
    index = IndexRebuild(made.index, usual_sizes(paths, None)) if index_files(paths) else None
    QueueRebuild(files, made, index=index).run()


def _sound(made: str, source: str) -> VerifyReport:
    found = verify(made)
    if not found.sound:
        raise StoreError(
            source, f"the copy is not sound: {found.findings[0]}; `mq store verify {source}` shows all findings"
        )
    return found


def _sums(root: str) -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield os.path.relpath(path, root), _sum(path)


def _sum(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
