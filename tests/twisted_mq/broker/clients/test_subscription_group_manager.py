"""The group table: built-in groups, groups made on demand, forbidden topics, versions."""

from __future__ import annotations

import pytest

from tests.support.broker import MemoryTable
from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.protocol.bodies import DataVersion, SubscriptionGroupConfig


def manager(table: MemoryTable, *, auto_create: bool = True) -> SubscriptionGroupManager:
    return SubscriptionGroupManager(table, lambda: 77, table.save, auto_create=auto_create)


def version(counter: int) -> DataVersion:
    return DataVersion(state_version=0, timestamp=77, counter=counter)


def test_built_in_groups_are_made_once() -> None:
    table = MemoryTable()
    for _ in range(2):
        manager(table).add_built_in_groups()
    assert set(table.groups) == {
        "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
        "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS",
    }  # fmt: skip
    assert (table.saved, table.data_version) == (1, version(1))


def test_a_group_is_made_at_its_first_use() -> None:
    table = MemoryTable()
    groups = manager(table)
    made = groups.find("G")
    assert (made, groups.find("G")) == (SubscriptionGroupConfig(group_name="G"), made)
    assert (table.saved, groups.data_version) == (1, version(1))


@pytest.mark.parametrize("name", ["../x", "a b", "", "x" * 256])
def test_bad_names_make_no_group(name: str) -> None:
    table = MemoryTable()
    assert (manager(table).find(name), table.groups, table.saved) == (None, {}, 0)


def test_unknown_groups_stay_unknown_where_none_are_made() -> None:
    table = MemoryTable()
    assert (manager(table, auto_create=False).find("G"), table.saved) == (None, 0)


def test_reading_is_forbidden_and_allowed_again_for_one_group_and_topic() -> None:
    table = MemoryTable()
    groups = manager(table)
    groups.forbid_reading("G", "T", forbidden=True)
    asked = [("G", "T"), ("G", "U"), ("H", "T")]
    assert [groups.may_not_read(*one) for one in asked] == [True, False, False]
    assert table.forbidden == {"G": {"T": 4}}
    groups.forbid_reading("G", "T", forbidden=False)
    assert (groups.may_not_read("G", "T"), table.forbidden, table.saved) == (False, {}, 2)


def test_a_deleted_group_takes_what_it_was_forbidden_along() -> None:
    table = MemoryTable()
    groups = manager(table)
    groups.find("G")
    groups.forbid_reading("G", "T", forbidden=True)
    assert (groups.delete("G"), groups.delete("G")) == (True, False)
    assert (table.groups, table.forbidden, groups.data_version) == ({}, {}, version(3))


def test_a_slave_takes_over_table_and_version_as_they_are() -> None:
    table = MemoryTable()
    groups = manager(table)
    groups.find("Old")
    taken, theirs = {"New": SubscriptionGroupConfig(group_name="New")}, DataVersion(1, 2, 3)
    groups.replace_all(taken, theirs)
    assert (groups.groups, groups.data_version, table.saved) == (taken, theirs, 2)


def test_only_so_many_groups_are_made_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.broker.clients.subscription_group_manager.MOST_GROUPS", 2)
    groups = manager(MemoryTable())
    assert [groups.find(name) is not None for name in ("A", "B", "C", "A")] == [True, True, False, True]
    groups.delete("A")
    assert groups.find("C") is not None


def test_one_address_leaves_half_of_the_groups_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.broker.clients.subscription_group_manager.MOST_GROUPS", 10)
    groups = manager(MemoryTable())
    made = [groups.find(f"S{number}", "10.0.0.9") is not None for number in range(10)]
    assert made == [True] * 5 + [False] * 5
    assert [groups.find(name, "10.0.0.1") is not None for name in ("A", "B")] == [True, True]
    groups.delete("S0")
    assert groups.find("S9", "10.0.0.9") is None  # the other's two leave it four
    groups.delete("S1")
    assert groups.find("S9", "10.0.0.9") is not None
