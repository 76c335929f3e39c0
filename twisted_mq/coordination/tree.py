"""Keeps the nodes of a coordinator in memory: changes of several of them are done whole or not at all.

It has no clock and no sessions of its own: an ephemeral node's session and the time are arguments.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from twisted_mq.coordination.interfaces import Check, Conflict, CoordinationError, Create, Delete, Operation, Put

ROOT: Final = "/"
NODE_BYTES = 200
"""The assumed size of a node without data."""


class Reason(enum.Enum):
    """The reasons why an operation cannot be done; the value is the text about a path."""

    MISSING = "is missing"
    PARENT_MISSING = "has no parent"
    EXISTS = "already exists"
    VERSION = "has another version"
    CHILDREN = "has children"
    EPHEMERAL_PARENT = "would be below an ephemeral node, which cannot have children"
    ROOT = "is not changed"


class NotApplied(Conflict):
    """Raised when nothing of a change was done, because of the operation at `index`."""

    def __init__(self, reason: Reason, path: str, index: int, detail: str = "") -> None:
        super().__init__(f"nothing was changed: {path} {reason.value}{detail}; read it again")
        self.reason = reason
        self.index = index


class TreeFull(CoordinationError):
    """Raised at a limit of the tree: nothing was changed."""


class ChangeKind(enum.Enum):
    """The kinds of changes of a node."""

    CREATED = 1
    DELETED = 2
    DATA = 3
    CHILDREN = 4


Change = tuple[ChangeKind, str]
"""The kind of change, and the node's path."""


@attrs.frozen
class TreeNode:
    """A node, with ZooKeeper's statistics: the numbers of transactions, and times in milliseconds since 1970."""

    data: bytes
    session: int
    created_by: int
    created_ms: int
    changed_by: int
    changed_ms: int
    children_changed_by: int
    version: int = 0
    children_version: int = 0


class Tree:
    """A tree that starts with the root alone. `told` gets the changes of each transaction after it, in order."""

    def __init__(self, max_nodes: int = 100_000, max_bytes: int = 64 << 20) -> None:
        self.last_transaction = 0
        self.told: list[Callable[[Sequence[Change]], object]] = []
        self._max_nodes = max_nodes
        self._max_bytes = max_bytes
        self._bytes = 0
        self._nodes = {ROOT: TreeNode(b"", 0, 0, 0, 0, 0, 0)}
        self._children: dict[str, set[str]] = {ROOT: set()}
        self._ephemeral: dict[int, dict[str, None]] = {}
        self._undo: list[tuple[str, TreeNode | None]] = []

    def __getitem__(self, path: str) -> TreeNode | None:
        """Return the node, None if it is missing."""
        return self._nodes.get(path)

    def __len__(self) -> int:
        return len(self._nodes)

    def children(self, path: str) -> list[str]:
        """Return the names, sorted; empty if the node is missing."""
        return sorted(self._children.get(path, ()))

    def child_count(self, path: str) -> int:
        """Return the number of names that `children` returns."""
        return len(self._children.get(path, ()))

    def ephemeral(self, session: int) -> tuple[str, ...]:
        """Return the paths of a session's nodes, in the order of their creation."""
        return tuple(self._ephemeral.get(session, ()))

    def apply(self, operations: Iterable[Operation], session: int, now_ms: int) -> tuple[str, ...]:
        """Do all operations or none. Returns the path of each operation, of created nodes with their digits.

        Raises NotApplied or TreeFull, and then nothing has changed.
        """
        self._undo = []
        changes: list[Change] = []
        number = self.last_transaction + 1
        try:
            paths = tuple(
                self._apply_one(index, operation, changes, session, number, now_ms)
                for index, operation in enumerate(operations)
            )
            self._within_limits()
        except CoordinationError:
            for path, before in reversed(self._undo):
                self._place(path, before)
            raise
        self.last_transaction = number
        for told in tuple(self.told) if changes else ():
            told(changes)
        return paths

    def _within_limits(self) -> None:
        if len(self._nodes) > self._max_nodes or self._bytes > self._max_bytes:
            raise TreeFull(
                f"the embedded coordinator is full ({self._max_nodes} nodes, {self._max_bytes} bytes): use ZooKeeper"
            )

    def _apply_one(
        self, index: int, operation: Operation, changes: list[Change], session: int, number: int, now_ms: int
    ) -> str:
        match operation:
            case Create():
                return self._create(index, operation, changes, session, number, now_ms)
            case Put(path, data, version):
                node = self._checked(index, path, version)
                later = attrs.evolve(node, data=data, version=node.version + 1, changed_by=number, changed_ms=now_ms)
                self._change(path, later)
                changes.append((ChangeKind.DATA, path))
            case Delete(path, version):
                self._delete(index, path, version, changes, number)
            case Check(path, version):
                self._checked(index, path, version)
        return operation.path

    def _checked(self, index: int, path: str, version: int | None) -> TreeNode:
        node = self._nodes.get(path)
        if node is None:
            raise NotApplied(Reason.MISSING, path, index)
        if version is not None and node.version != version:
            raise NotApplied(Reason.VERSION, path, index, f" ({node.version}, not {version})")
        return node

    def _create(self, index: int, new: Create, changes: list[Change], session: int, number: int, now_ms: int) -> str:
        above = parent_of(new.path)
        parent = self._nodes.get(above)
        if parent is None:
            raise NotApplied(Reason.PARENT_MISSING, new.path, index)
        if parent.session:
            raise NotApplied(Reason.EPHEMERAL_PARENT, new.path, index)
        path = f"{new.path}{parent.children_version:010}" if new.sequential else new.path
        if path in self._nodes:
            raise NotApplied(Reason.EXISTS, path, index)
        owner = session if new.ephemeral else 0
        self._change(path, TreeNode(new.data, owner, number, now_ms, number, now_ms, number))
        self._children_changed(above, number)
        changes += [(ChangeKind.CREATED, path), (ChangeKind.CHILDREN, above)]
        return path

    def _delete(self, index: int, path: str, version: int | None, changes: list[Change], number: int) -> None:
        if path == ROOT:
            raise NotApplied(Reason.ROOT, path, index)
        self._checked(index, path, version)
        if self._children[path]:
            raise NotApplied(Reason.CHILDREN, path, index)
        self._change(path, None)
        above = parent_of(path)
        self._children_changed(above, number)
        changes += [(ChangeKind.DELETED, path), (ChangeKind.CHILDREN, above)]

    def _children_changed(self, path: str, number: int) -> None:
        node = self._nodes[path]
        later = attrs.evolve(node, children_version=node.children_version + 1, children_changed_by=number)
        self._change(path, later)

    def _change(self, path: str, node: TreeNode | None) -> None:
        self._undo.append((path, self._nodes.get(path)))
        self._place(path, node)

    def _place(self, path: str, node: TreeNode | None) -> None:
        """Set or remove the node at a path: data, the parent's children and the session's nodes agree after it."""
        before = self._nodes.pop(path, None)
        if before is not None:
            self._bytes -= NODE_BYTES + len(path) + len(before.data)
        if node is not None:
            self._bytes += NODE_BYTES + len(path) + len(node.data)
            self._nodes[path] = node
        if before is None and node is not None:
            self._children[path] = set()
            self._children[parent_of(path)].add(name_of(path))
            if node.session:
                self._ephemeral.setdefault(node.session, {})[path] = None
        elif before is not None and node is None:
            del self._children[path]
            self._children[parent_of(path)].discard(name_of(path))
            if before.session:
                self._forget_ephemeral(before.session, path)

    def _forget_ephemeral(self, session: int, path: str) -> None:
        paths = self._ephemeral[session]
        del paths[path]
        if not paths:
            del self._ephemeral[session]


def parent_of(path: str) -> str:
    """Return the path above; the root's is the root."""
    return path.rpartition("/")[0] or ROOT


def name_of(path: str) -> str:
    """Return the last part."""
    return path.rpartition("/")[2]
