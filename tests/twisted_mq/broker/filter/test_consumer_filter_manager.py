"""Registration by version, death, revival, expiry, and what is on disk (Apache: ConsumerFilterManager)."""

from __future__ import annotations

import json

import attrs
import pytest

from twisted_mq.broker.filter import consumer_filter_manager
from twisted_mq.broker.filter.bloom_filter import BloomFilter
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterData, ConsumerFilterTable
from twisted_mq.broker.filter.consumer_filter_manager import CLEAN_AFTER_MS, CompileRoom, ConsumerFilterManager
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.protocol.bodies import SubscriptionData

NOW = 1_800_000_000_000


@attrs.define
class MemoryTable:
    filters: dict[str, dict[str, ConsumerFilterData]] = attrs.field(factory=dict)
    saved: int = 0

    def load(self):
        return []

    def save(self):
        self.saved += 1
        return True


@pytest.fixture
def manager():
    return ConsumerFilterManager(MemoryTable(), BloomFilter(20, 32))


def sql(expression, version=1, topic="T", kind="SQL92"):
    return SubscriptionData(topic=topic, sub_string=expression, sub_version=version, expression_type=kind)


def seen(data):
    return (data.expression, data.client_version, data.born_time, data.dead_time)


def test_a_heartbeat_registers_expressions_and_no_tags(manager):
    assert manager.register("g", [sql("a > 5"), sql("x || y", topic="Tags", kind="TAG")], NOW) == {}
    assert [data.topic for data in manager.of_group("g")] == ["T"]
    data = manager.get("T", "g")
    assert seen(data) == ("a > 5", 1, NOW, 0)
    assert data.bloom_filter_data == manager.bloom_filter.generate("g#T")
    assert data.compiled.evaluate({"a": "6"})


def test_a_newer_version_replaces_the_expression_and_is_born_anew(manager):
    manager.register_one("g", sql("a > 5", 1), NOW)
    assert manager.register_one("g", sql("a > 6", 2), NOW + 10)
    assert seen(manager.get("T", "g")) == ("a > 6", 2, NOW + 10, 0)


def test_a_newer_version_of_the_same_expression_keeps_its_birth(manager):
    manager.register_one("g", sql("a > 5", 1), NOW)
    assert manager.register_one("g", sql("a > 5", 2), NOW + 10)
    assert seen(manager.get("T", "g")) == ("a > 5", 2, NOW, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_that_is_no_newer_changes_nothing(manager, version):
    manager.register_one("g", sql("a > 5", 2), NOW)
    assert not manager.register_one("g", sql("a > 6", version), NOW + 10)
    assert seen(manager.get("T", "g")) == ("a > 5", 2, NOW, 0)


def test_a_bad_expression_is_reported_and_takes_the_old_one_away(manager):
    manager.register_one("g", sql("a > 5", 1), NOW)
    refused = manager.register("g", [sql("a > ", 2), sql("b = 1", 2, topic="U")], NOW + 1)
    assert {topic: (error.position, error.reason) for topic, error in refused.items()} == {
        "T": (4, "expected a value or (, found the end")
    }
    assert manager.get("T", "g") is None
    assert manager.get("U", "g").expression == "b = 1"


def test_new_expressions_of_one_heartbeat_are_bounded_and_the_next_brings_the_rest(manager):
    """Also where some are refused: those are known by then."""
    long = [sql(f"a{number} = '{'x' * 3000}'" + " AND" * (number == 0), topic=f"T{number}") for number in range(5)]

    def heartbeat():
        room = CompileRoom()
        return manager.register("g", long[:3], NOW, room) | manager.register("h", long[3:], NOW, room)

    known = []
    for _ in range(3):
        assert list(heartbeat()) == ["T0"]
        known.append((len(manager.of_group("g")), len(manager.of_group("h"))))
    assert known == [(1, 0), (2, 1), (2, 2)]


def test_an_expression_of_an_unknown_type_is_refused(manager):
    with pytest.raises(ExpressionError, match="no filter for expressions of type XPATH"):
        manager.register_one("g", sql("a", kind="XPATH"), NOW)


def test_a_group_that_goes_offline_dies_and_its_heartbeat_revives_it(manager):
    manager.register_one("g", sql("a > 5", 3), NOW)
    manager.register_one("other", sql("a > 5", 3), NOW)
    manager.unregister("g", NOW + 7)
    manager.unregister("g", NOW + 9)
    assert [one.dead_time for one in manager.of_topic("T")] == [NOW + 7, 0]
    assert not manager.register_one("g", sql("a > 5", 2), NOW + 10)
    assert manager.get("T", "g").is_dead
    assert manager.register_one("g", sql("a > 5", 3), NOW + 10)
    assert seen(manager.get("T", "g")) == ("a > 5", 3, NOW, 0)


def test_a_topic_that_is_no_longer_subscribed_dies(manager):
    manager.register("g", [sql("a > 5", topic="A"), sql("b > 5", topic="B")], NOW)
    manager.register("g", [sql("b > 5", topic="B")], NOW + 5)
    assert (manager.get("A", "g").dead_time, manager.get("B", "g").dead_time) == (NOW + 5, 0)


def test_the_dead_are_forgotten_after_a_day(manager):
    manager.register_one("g", sql("a > 5"), NOW)
    manager.register_one("alive", sql("a > 5", topic="U"), NOW)
    manager.unregister("g", NOW)
    manager.clean(NOW + CLEAN_AFTER_MS - 1)
    assert manager.get("T", "g") is not None
    manager.clean(NOW + CLEAN_AFTER_MS)
    assert manager._table.filters.keys() == {"U"}


def on_disk(path, consumers=32):
    return ConsumerFilterManager(ConsumerFilterTable(str(path)), BloomFilter(20, consumers))


def test_the_table_is_written_as_apaches(tmp_path):
    path = tmp_path / "consumerFilter.json"
    manager = on_disk(path)
    manager.register_one("g", sql("a > 5", 17), NOW)
    assert manager.save(NOW) is True
    assert manager.save(NOW) is False
    stored = {
        "bloomFilterData": {"bitNum": 112, "bitPos": list(manager.bloom_filter.positions("g#T"))},
        "bornTime": NOW,
        "clientVersion": 17,
        "consumerGroup": "g",
        "dead": False,
        "deadTime": 0,
        "expression": "a > 5",
        "expressionType": "SQL92",
        "topic": "T",
    }
    expected = {"filterDataByTopic": {"T": {"groupFilterData": {"g": stored}, "topic": "T"}}}
    assert json.loads(path.read_text()) == expected


@pytest.mark.parametrize("later, dead_since", [(10_000, NOW), (50_000, NOW + 20_000)])
def test_loaded_groups_count_as_offline_for_half_a_minute(tmp_path, later, dead_since):
    path = tmp_path / "consumerFilter.json"
    before = on_disk(path)
    before.register_one("g", sql("a > 5", 17), NOW)
    before.save(NOW)
    after = on_disk(path)
    assert after.load(NOW + later) == []
    assert seen(after.get("T", "g")) == ("a > 5", 17, NOW, dead_since)
    assert after.get("T", "g").compiled.evaluate({"a": "6"})


def test_a_table_of_another_bloom_filter_is_ignored(tmp_path):
    path = tmp_path / "consumerFilter.json"
    before = on_disk(path)
    before.register_one("g", sql("a > 5"), NOW)
    before.save(NOW)
    after = on_disk(path, consumers=64)
    after.load(NOW)
    assert after.get("T", "g") is None


def test_a_damaged_table_is_replaced_by_its_backup(tmp_path):
    path = tmp_path / "consumerFilter.json"
    before = on_disk(path)
    before.register_one("g", sql("a > 5"), NOW)
    before.save(NOW)
    before.register_one("h", sql("a > 6"), NOW)
    before.save(NOW)
    path.write_text('{"filterDataByTopic":')
    after = on_disk(path)
    assert [str(action).endswith("consumerFilter.json.damaged") for action in after.load(NOW)] == [True]
    assert (after.get("T", "g").expression, after.get("T", "h")) == ("a > 5", None)


def test_a_stored_expression_that_does_not_compile_has_no_function(tmp_path):
    path = tmp_path / "consumerFilter.json"
    before = on_disk(path)
    before.register_one("g", sql("a > 5"), NOW)
    before.save(NOW)
    path.write_text(path.read_text().replace("a > 5", "a >"))
    after = on_disk(path)
    after.load(NOW)
    assert after.get("T", "g").compiled is None


def test_an_address_keeps_expressions_up_to_half_of_what_the_others_leave(manager, monkeypatch):
    monkeypatch.setattr(consumer_filter_manager, "MOST_CHARACTERS", 1000)
    long = "a = '" + "1" * 94 + "'"
    refused = manager.register("g", [sql(long, topic=f"T{number}") for number in range(4)], NOW, address="10.0.0.1")
    assert (list(refused), [data.topic for data in manager.of_group("g")]) == (["T2", "T3"], ["T0", "T1"])
    assert manager.register("g", [sql(long, topic="T2")], NOW, address="10.0.0.2") == {}
    assert manager.register("h", [sql("a > 5", topic="T0")], NOW, address="10.0.0.1") != {}
    manager.unregister("g", NOW)
    manager.clean(NOW + CLEAN_AFTER_MS)
    assert (manager.of_group("g"), manager.register("h", [sql("a > 5")], NOW, address="10.0.0.1")) == ([], {})
