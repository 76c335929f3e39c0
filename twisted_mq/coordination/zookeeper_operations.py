"""Translates operations, nodes and errors to and from kazoo's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo import exceptions
from kazoo.protocol.states import ZnodeStat

from twisted_mq.coordination.interfaces import (
    Check,
    Conflict,
    CoordinationError,
    Create,
    Delete,
    NoAnswer,
    Node,
    NotAllowed,
    Operation,
    Put,
    SessionLost,
)

NOT_DONE = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""The results of operations in a multi-transaction that were not done because another one failed."""

KINDS: dict[type[Exception], type[CoordinationError]] = {
    exceptions.NoNodeError: Conflict,
    exceptions.BadVersionError: Conflict,
    exceptions.NodeExistsError: Conflict,
    exceptions.NotEmptyError: Conflict,
    exceptions.NoChildrenForEphemeralsError: Conflict,
    exceptions.ConnectionLoss: NoAnswer,
    exceptions.ConnectionClosedError: NoAnswer,
    exceptions.OperationTimeoutError: NoAnswer,
    exceptions.RequestTimeoutError: NoAnswer,
    exceptions.SessionExpiredError: SessionLost,
    exceptions.SessionMovedError: SessionLost,
    exceptions.NoAuthError: NotAllowed,
    exceptions.AuthFailedError: NotAllowed,
    exceptions.InvalidACLError: NotAllowed,
    exceptions.SessionClosedRequireSaslError: NotAllowed,
}

ADVICE: dict[type[CoordinationError], str] = {
    Conflict: "nothing was changed: read it again",
    NotAllowed: "check orderCoordinatorAuth and the access rights of the node",
}


def node_of(data: bytes, stat: ZnodeStat) -> Node:
    """Return a node from what kazoo read."""
    return Node(data, stat.version, stat.ephemeralOwner)


def add_to(transaction: Any, operation: Operation) -> None:
    """Add an operation to kazoo's transaction."""
    match operation:
        case Create(path, data, ephemeral, sequential):
            transaction.create(path, data, ephemeral=ephemeral, sequence=sequential)
        case Put(path, data, version):
            transaction.set_data(path, data, _any(version))
        case Delete(path, version):
            transaction.delete(path, _any(version))
        case Check(path, version):
            transaction.check(path, _any(version))


def _any(version: int | None) -> int:
    return -1 if version is None else version


def created_paths(operations: Sequence[Operation], results: Sequence[object]) -> tuple[str, ...]:
    """Return the created paths from a transaction's results. Raises the error that kept it from being done."""
    failed = [(one, result) for one, result in zip(operations, results, strict=True) if isinstance(result, Exception)]
    for operation, error in failed:
        if not isinstance(error, NOT_DONE):
            raise translated(error, operation.path)
    if failed:
        raise CoordinationError("ZooKeeper changed nothing and reports no reason")
    created = zip(operations, results, strict=True)
    return tuple(str(path) for operation, path in created if isinstance(operation, Create))


def translated(error: Exception, path: str = "") -> CoordinationError:
    """Return the error as callers know it, with what to do."""
    kind = next((KINDS[one] for one in type(error).__mro__ if one in KINDS), CoordinationError)
    words = [f"ZooKeeper says {type(error).__name__}", f" of {path}" if path else "", f" {error}" if str(error) else ""]
    return kind("".join(words) + (f": {ADVICE[kind]}" if kind in ADVICE else ""))
