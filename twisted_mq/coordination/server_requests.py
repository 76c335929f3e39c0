"""Translates ZooKeeper's requests to operations of the tree, and the tree's nodes and refusals to ZooKeeper's answers."""

from __future__ import annotations

from typing import Any

from twisted_mq.coordination.interfaces import Check, CoordinationError, Create, Delete, Operation, Put
from twisted_mq.coordination.operations import check_path
from twisted_mq.coordination.tree import NotApplied, Reason, Tree, TreeFull, TreeNode
from twisted_mq.protocol.zookeeper.codes import EPHEMERAL_FLAG, SEQUENTIAL_FLAG, ErrorCode, RequestCode
from twisted_mq.protocol.zookeeper.records import END

REFUSALS = {
    Reason.MISSING: ErrorCode.NO_NODE,
    Reason.PARENT_MISSING: ErrorCode.NO_NODE,
    Reason.EXISTS: ErrorCode.NODE_EXISTS,
    Reason.VERSION: ErrorCode.BAD_VERSION,
    Reason.CHILDREN: ErrorCode.NOT_EMPTY,
    Reason.EPHEMERAL_PARENT: ErrorCode.NO_CHILDREN_FOR_EPHEMERALS,
    Reason.ROOT: ErrorCode.BAD_ARGUMENTS,
}

ANY_VERSION = -1

LAST = {"code": END, "done": True, "error": END, "record": None}
"""The end of a multi-transaction's answer."""


class OperationRefused(Exception):
    """Raised for a request that is answered with an error."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


def node_path(path: str) -> str:
    """Return the path. Raises Refused if no node can have it."""
    try:
        return check_path(path)
    except ValueError:
        raise OperationRefused(ErrorCode.BAD_ARGUMENTS) from None


def operation_of(code: int, record: Any) -> Operation:
    """Return the change that a request asks for. Raises Refused if the tree cannot do it."""
    path = node_path(record.path)
    match code:
        case RequestCode.CREATE | RequestCode.CREATE_2:
            if record.flags & ~(EPHEMERAL_FLAG | SEQUENTIAL_FLAG):
                raise OperationRefused(ErrorCode.UNIMPLEMENTED)
            flags = record.flags
            return Create(path, record.data, bool(flags & EPHEMERAL_FLAG), bool(flags & SEQUENTIAL_FLAG))
        case RequestCode.SET_DATA:
            return Put(path, record.data, _version(record.version))
        case RequestCode.DELETE:
            return Delete(path, _version(record.version))
        case _:
            return Check(path, _version(record.version))


def _version(version: int) -> int | None:
    return None if version == ANY_VERSION else version


def error_of(refusal: CoordinationError) -> ErrorCode:
    """Return the number for a refusal of the tree."""
    if isinstance(refusal, NotApplied):
        return REFUSALS[refusal.reason]
    return ErrorCode.QUOTA_EXCEEDED if isinstance(refusal, TreeFull) else ErrorCode.SYSTEM_ERROR


def stat_of(tree: Tree, path: str, node: TreeNode) -> dict[str, int]:
    """Return ZooKeeper's statistics of a node."""
    return {
        "created_by": node.created_by,
        "changed_by": node.changed_by,
        "created_ms": node.created_ms,
        "changed_ms": node.changed_ms,
        "version": node.version,
        "children_version": node.children_version,
        "acl_version": 0,
        "session": node.session,
        "data_length": len(node.data),
        "child_count": tree.child_count(path),
        "children_changed_by": node.children_changed_by,
    }


def result_of(tree: Tree, path: str) -> dict[str, Any]:
    """Return all fields that the answer to a change may have: each answer takes the fields that it needs."""
    node = tree[path]
    return {"path": path} if node is None else {"path": path, "stat": stat_of(tree, path, node)}


def done_parts(tree: Tree, codes: list[int], paths: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the parts of the answer to a multi-transaction that was done."""
    results = zip(codes, paths, strict=True)
    done = [{"code": code, "done": False, "error": 0, "record": result_of(tree, path)} for code, path in results]
    return [*done, LAST]


def refused_parts(count: int, failed: int, error: ErrorCode) -> list[dict[str, Any]]:
    """Return the parts of the answer to one that was not done: those before the failed one, it, and those after it."""
    errors = [ErrorCode.OK] * failed + [error] + [ErrorCode.RUNTIME_INCONSISTENCY] * (count - failed - 1)
    return [*({"code": END, "done": False, "error": one, "record": {"error": one}} for one in errors), LAST]
