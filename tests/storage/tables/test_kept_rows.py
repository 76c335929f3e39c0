"""Rows of a table that are encoded once: changed, added, removed, in another order."""

from __future__ import annotations

import pytest

from twisted_mq.storage.tables.kept_rows import KeptRows


class Row:
    """A row that is equal to every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def encoded() -> list[str]:
    return []


@pytest.fixture
def rows(encoded: list[str]) -> KeptRows:
    def encode(name: str, row: object) -> bytes:
        encoded.append(name)
        return f"{name}{len(encoded)}".encode()

    return KeptRows(encode)


def test_only_new_rows_are_encoded(rows: KeptRows, encoded: list[str]) -> None:
    table = {name: Row() for name in "abc"}
    assert rows.texts(table) == [b"a1", b"b2", b"c3"]
    assert rows.texts(dict(table)) == [b"a1", b"b2", b"c3"]
    table["b"] = Row()
    table["d"] = Row()
    assert rows.texts(table) == [b"a1", b"b4", b"c3", b"d5"]
    assert encoded == ["a", "b", "c", "b", "d"]


def test_a_row_that_came_back_is_encoded_again(rows: KeptRows, encoded: list[str]) -> None:
    table = {name: Row() for name in "abc"}
    rows.texts(table)
    removed = table.pop("b")
    table["d"] = Row()
    assert rows.texts(table) == [b"a1", b"c3", b"d4"]
    del table["d"]
    assert rows.texts(table) == [b"a1", b"c3"]
    table["b"] = removed
    assert rows.texts(table) == [b"a1", b"c3", b"b5"]
    assert rows.texts({}) == []
    assert rows.texts(table) == [b"a6", b"c7", b"b8"]


def test_texts_are_in_the_tables_order(rows: KeptRows) -> None:
    table = {name: Row() for name in "abc"}
    rows.texts(table)
    assert rows.texts({name: table[name] for name in "cab"}) == [b"c3", b"a1", b"b2"]


def test_texts_of_removed_rows_are_forgotten(rows: KeptRows) -> None:
    for number in range(100):
        rows.texts({f"a{number}": Row(), "b": Row()})
    assert [len(kept) for kept in rows._known] == [2, 2]
