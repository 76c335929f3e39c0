"""Store directories on any file system that Arrow supports: local paths, s3a, hdfs and others.

A store is given by a path (`/data/store`, `file:/data/store`) or a URI (`s3a://bucket/store`, `hdfs://host:8020/store`). Access
parameters in Arrow's URIs (`s3a://KEY:SECRET@bucket/store?endpoint_override=host:9000&scheme=http`) are passed on unchanged.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

import attrs
from pyarrow import fs

from twisted_mq.spark.errors import NoCommitLog, WrongOption
from twisted_mq.spark.file_systems import local_path, locate
from twisted_mq.storage.files.paths import file_offset

COMMIT_LOG = "commitlog"
_PATTERN = re.compile(r"[*?\[]")


@attrs.frozen
class Store:
    """A store directory or its commit log directory; `broker_name` if the reader set one."""

    uri: str
    broker_name: str | None = None

    @property
    def name(self) -> str:
        """Return the path or URI without credentials."""
        if "://" not in self.uri:
            return self.uri
        parts = urlsplit(self.uri)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


@attrs.frozen
class LogFile:
    """A commit log file as it was listed: the physical offset of its first byte, and its size in bytes."""

    path: str
    first_offset: int
    size: int

    @property
    def end(self) -> int:
        """Return the physical offset after it."""
        return self.first_offset + self.size


def stores_named(uris: Sequence[str], broker_names: Sequence[str] = ()) -> tuple[Store, ...]:
    """Return the stores of these paths in order, patterns (`/data/*/store`) resolved and sorted.

    Broker names belong to the resolved stores one by one. Raises NoCommitLog if a pattern matches nothing, WrongOption if there
    are more or fewer names than stores.
    """
    found = [match for uri in uris for match in _matches(local_path(uri))]
    if broker_names and len(broker_names) != len(found):
        raise WrongOption("brokerName", ",".join(broker_names), f"{len(found)} stores are read, each needs a name")
    return tuple(map(Store, found, broker_names or itertools.repeat(None)))


def _matches(uri: str) -> list[str]:
    """Return the directories that match a pattern; a path without a pattern is returned."""
    scheme, mark, rest = uri.rpartition("://")
    path, ask, query = rest.partition("?") if mark else (rest, "", "")
    if not _PATTERN.search(path):
        return [uri]
    steps = path.split("/")
    plain = next(number for number, step in enumerate(steps) if _PATTERN.search(step))
    found = [scheme + mark + "/".join(steps[:plain])]
    for step in steps[plain:]:
        found = [f"{parent}/{name}" for parent in found for name in _children(parent + ask + query, step)]
    if not found:
        raise NoCommitLog(Store(uri).name, "no directory matches")
    return [match + ask + query for match in found]


def _children(parent: str, step: str) -> list[str]:
    """Return the names of the directories in `parent` that match a step of a pattern, sorted."""
    return [name for name in directories_in(Store(parent or "/")) if fnmatch.fnmatchcase(name, step)]


def log_directory(store: Store) -> str:
    """Return the path of the commit log files, from a store or the commit log directory itself. Raises NoCommitLog."""
    system, path = locate(store.uri)
    inside = f"{path}/{COMMIT_LOG}"
    here, below = system.get_file_info([path, inside])
    if below.type == fs.FileType.Directory:
        return inside
    if here.type != fs.FileType.Directory:
        raise NoCommitLog(store.name, "no such directory")
    if any(file_offset(info.base_name) is not None for info in _listed(system, path)):
        return path
    raise NoCommitLog(store.name, "holds no commitlog directory")


def list_log_files(store: Store) -> list[LogFile]:
    """Return the store's commit log files in order, without empty ones: names and sizes, nothing is read. Raises NoCommitLog."""
    return files_in(store, log_directory(store))


def files_in(store: Store, directory: str) -> list[LogFile]:
    """Return the files of a directory whose names are offsets, in order; none for empty or missing directories."""
    system, _ = locate(store.uri)
    found = []
    for info in _listed(system, directory):
        first_offset = file_offset(info.base_name)
        if first_offset is not None and info.size:
            found.append(LogFile(info.path, first_offset, info.size))
    return sorted(found, key=lambda file: file.first_offset)


def directories_in(store: Store, *steps: str) -> list[str]:
    """Return the names of the directories below the store; none if the path is missing."""
    system, root = locate(store.uri)
    listed = _listed(system, "/".join((root, *steps)))
    return sorted(info.base_name for info in listed if info.type == fs.FileType.Directory)


def files_below(store: Store, directory: str) -> list[fs.FileInfo]:
    """Return all files below a directory of the store."""
    system, root = locate(store.uri)
    selector = fs.FileSelector(f"{root}/{directory}", allow_not_found=True, recursive=True)
    return [info for info in system.get_file_info(selector) if info.type == fs.FileType.File]


def _listed(system: fs.FileSystem, path: str) -> list[fs.FileInfo]:
    found: list[fs.FileInfo] = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return found
