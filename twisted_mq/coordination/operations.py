"""Checks paths and changes before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.coordination.interfaces import MAX_COMMIT_BYTES, Create, Operation, Put


def check_path(path: str) -> str:
    """Return the path. Raises ValueError if no node can have it: ZooKeeper's rules."""
    parts = path.split("/")
    if path != "/" and (parts[0] or not all(parts[1:]) or len(parts) < 2 or {".", ".."} & set(parts)):
        raise ValueError(f"not a node path: {path!r}; it must begin with / and have names between single /")
    if any(_is_refused(letter) for letter in path):
        raise ValueError(f"not a node path: {path!r} has a character that ZooKeeper refuses")
    return path


def _is_refused(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter <= "\x9f" or "\ud800" <= letter <= "\uf8ff" or letter >= "\ufff0"


def check_operations(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations. Raises ValueError if a path is malformed or all of it is too large."""
    size = 0
    for operation in operations:
        size += len(check_path(operation.path))
        if isinstance(operation, Create | Put):
            size += len(operation.data)
    if size > MAX_COMMIT_BYTES:
        raise ValueError(f"{size} bytes in one change; the coordinator takes {MAX_COMMIT_BYTES}")
    return tuple(operations)


def below(chroot: str, path: str) -> str:
    """Return a client's path as the server has it; `chroot` is empty or a path."""
    return chroot if chroot and path == "/" else chroot + path
