"""The tree: limits, statistics of nodes, and refused changes, which leave nothing behind."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.coordination.interfaces import Check, Create, Delete, Operation, Put
from twisted_mq.coordination.tree import ChangeKind, NotApplied, Reason, Tree, TreeFull, TreeNode

PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/deep"])
VERSIONS = st.none() | st.integers(0, 2)
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=3), ephemeral=st.booleans(), sequential=st.booleans()),
    st.builds(Put, PATHS, st.binary(max_size=3), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)


def state(tree: Tree) -> dict[str, object]:
    """All that a tree keeps."""
    kept = {name: value for name, value in vars(tree).items() if name not in ("_undo", "told")}
    kept["_children"] = {path: sorted(names) for path, names in kept["_children"].items()}
    kept["_ephemeral"] = {session: sorted(paths) for session, paths in kept["_ephemeral"].items()}
    return kept


def copied(tree: Tree) -> dict[str, object]:
    return {name: dict(value) if isinstance(value, dict) else value for name, value in state(tree).items()}


@given(st.lists(st.tuples(st.integers(1, 3), st.lists(OPERATIONS, min_size=1, max_size=5)), max_size=12))
def test_a_refused_change_leaves_nothing_and_a_done_one_is_its_operations_one_by_one(
    commits: list[tuple[int, list[Operation]]],
) -> None:
    tree, one_by_one = Tree(), Tree()
    for session, operations in commits:
        before = copied(tree)
        try:
            paths = tree.apply(operations, session, 5)
        except NotApplied as refused:
            assert copied(tree) == before
            assert 0 <= refused.index < len(operations)
        else:
            assert paths == sum((one_by_one.apply([one], session, 5) for one in operations), ())
            for tree_path in ("/", "/a", "/a/x"):
                assert tree.children(tree_path) == one_by_one.children(tree_path)
            assert all(tree.ephemeral(one) == one_by_one.ephemeral(one) for one in (1, 2, 3))
            assert tree._bytes == one_by_one._bytes


def test_a_node_has_zookeepers_figures() -> None:
    tree = Tree()
    tree.apply([Create("/a", b"1")], 0, 1000)
    tree.apply([Create("/a/e", ephemeral=True)], 7, 2000)
    tree.apply([Put("/a", b"2", 0)], 0, 3000)
    assert tree["/a"] == TreeNode(
        b"2", 0, created_by=1, created_ms=1000, changed_by=3, changed_ms=3000, children_changed_by=2,
        version=1, children_version=1,
    )  # fmt: skip
    assert tree["/a/e"] == TreeNode(b"", 7, 2, 2000, 2, 2000, 2)
    assert (tree.ephemeral(7), tree.child_count("/a"), tree.last_transaction, len(tree)) == (("/a/e",), 1, 3, 3)


def test_changes_are_told_in_order_and_none_of_a_refused_one() -> None:
    tree = Tree()
    told: list[object] = []
    tree.told.append(told.append)
    tree.apply([Create("/a"), Put("/a", b"", 0), Check("/a")], 0, 0)
    with pytest.raises(NotApplied):
        tree.apply([Create("/b"), Delete("/none")], 0, 0)
    tree.apply([Check("/a")], 0, 0)
    tree.apply([Delete("/a")], 0, 0)
    assert told == [
        [(ChangeKind.CREATED, "/a"), (ChangeKind.CHILDREN, "/"), (ChangeKind.DATA, "/a")],
        [(ChangeKind.DELETED, "/a"), (ChangeKind.CHILDREN, "/")],
    ]


@pytest.mark.parametrize(
    "new", [[Create("/c")], [Put("/b", bytes(1000), None)], [Delete("/a"), Create("/a", bytes(900))]]
)
def test_a_full_tree_takes_no_more_and_keeps_what_it_has(new: list[Operation]) -> None:
    tree = Tree(max_nodes=3, max_bytes=1000)
    tree.apply([Create("/a"), Create("/b")], 0, 0)
    before = copied(tree)
    with pytest.raises(TreeFull, match="use ZooKeeper"):
        tree.apply(new, 0, 0)
    assert copied(tree) == before


@pytest.mark.parametrize(
    ("operation", "reason", "text"),
    [
        (Create("/a"), Reason.EXISTS, "nothing was changed: /a already exists; read it again"),
        (Put("/a", b"", 3), Reason.VERSION, "nothing was changed: /a has another version (0, not 3); read it again"),
        (Delete("/"), Reason.ROOT, "nothing was changed: / is not changed; read it again"),
    ],
)
def test_a_refusal_says_why(operation: Operation, reason: Reason, text: str) -> None:
    tree = Tree()
    tree.apply([Create("/a")], 0, 0)
    with pytest.raises(NotApplied) as refused:
        tree.apply([Check("/a"), operation], 0, 0)
    assert (refused.value.reason, refused.value.index, str(refused.value)) == (reason, 1, text)
    assert attrs.evolve(tree["/a"], data=b"") == tree["/a"]
