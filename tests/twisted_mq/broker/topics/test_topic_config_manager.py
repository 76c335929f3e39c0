"""The topic table: what a broker starts with, what a default topic hands on, what is saved and told."""

from __future__ import annotations

import attrs
import pytest

from tests.support.broker import MemoryTable
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager, startup_topics
from twisted_mq.protocol.bodies import DataVersion, TopicConfig


def options(**more: object) -> BrokerOptions:
    return BrokerOptions(**{"broker_name": "b", "broker_cluster_name": "C", "store_path_root_dir": "/nowhere"} | more)


@attrs.define
class Told:
    """A manager over a table in memory, and what it told."""

    table: MemoryTable = attrs.field(factory=MemoryTable)
    changes: list[list[TopicConfig] | None] = attrs.field(factory=list)

    def manager(self) -> TopicConfigManager:
        return TopicConfigManager(self.table, lambda: 77, self.changes.append, self.table.save)


def test_a_broker_starts_with_apaches_topics() -> None:
    table = {one.topic_name: (one.read_queue_nums, one.write_queue_nums, one.perm) for one in startup_topics(options())}
    assert table == {
        "SELF_TEST_TOPIC": (1, 1, 6), "TBW102": (8, 8, 7), "BenchmarkTest": (1024, 1024, 6), "C": (16, 16, 7),
        "b": (1, 1, 7), "OFFSET_MOVED_EVENT": (1, 1, 6), "SCHEDULE_TOPIC_XXXX": (18, 18, 6), "C_REPLY_TOPIC": (1, 1, 6),
        "rmq_sys_REVIVE_LOG_C": (8, 8, 6), "rmq_sys_SYNC_BROKER_MEMBER_b": (1, 1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 1, 6), "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 1, 6), "rmq_sys_wheel_timer": (1, 1, 6),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "topic", "perm"),
    [
        ({"auto_create_topic_enable": False}, "TBW102", None),
        ({"cluster_topic_enable": False}, "C", 1),
        ({"broker_topic_enable": False}, "b", 1),
        ({"trace_topic_enable": True}, "RMQ_SYS_TRACE_TOPIC", 6),
    ],
)
def test_options_change_what_it_starts_with(setting: dict[str, bool], topic: str, perm: int | None) -> None:
    assert {one.topic_name: one.perm for one in startup_topics(options(**setting))}.get(topic) == perm


def test_startup_topics_that_are_there_stay_as_they_are() -> None:
    told = Told()
    told.table.topics["TBW102"] = TopicConfig(topic_name="TBW102", perm=4)
    told.manager().add_startup_topics(options())
    told.manager().add_startup_topics(options())
    assert (told.table.topics["TBW102"].perm, told.table.saved, told.changes) == (4, 1, [])


@pytest.mark.parametrize(("asked", "queues"), [(4, 4), (99, 8), (0, 0), (-3, 0)])
def test_a_default_topic_hands_on_at_most_its_own_queues(asked: int, queues: int) -> None:
    told = Told()
    manager = told.manager()
    manager.add_startup_topics(options())
    made = manager.create_by_default_topic("T", "TBW102", asked, 2, options())
    assert made == TopicConfig(
        topic_name="T", read_queue_nums=queues, write_queue_nums=queues, perm=6, topic_sys_flag=2
    )
    assert (manager.get("T"), told.changes) == (made, [[made]])


@pytest.mark.parametrize(
    ("default", "setting"),
    [("Nowhere", {}), ("BenchmarkTest", {}), ("TBW102", {"auto_create_topic_enable": False})],
)
def test_a_topic_that_hands_nothing_on_makes_none(default: str, setting: dict[str, bool]) -> None:
    told = Told()
    manager = told.manager()
    manager.add_startup_topics(options())
    assert manager.create_by_default_topic("T", default, 4, 0, options(**setting)) is None
    assert (manager.get("T"), told.changes) == (None, [])


def test_each_change_counts_is_saved_and_told() -> None:
    told, heard = Told(), []
    manager = told.manager()
    manager.on_change.append(lambda: heard.append(manager.data_version.counter))
    config = TopicConfig(topic_name="T")
    manager.update([config])
    assert (manager.delete("T"), manager.delete("T")) == (True, False)
    manager.changed_as_a_whole()
    assert manager.data_version == DataVersion(state_version=0, timestamp=77, counter=3)
    assert (told.changes, told.table.saved, heard) == ([[config], None, None], 3, [1, 2, 3])


def test_a_groups_topic_is_made_once_and_follows_its_order() -> None:
    told = Told()
    manager = told.manager()
    made = manager.create_for_group("%RETRY%G", 1)
    assert manager.create_for_group("%RETRY%G", 5) == made
    ordered = manager.create_for_group("%RETRY%G", 1, order=True)
    assert (ordered, told.changes) == (attrs.evolve(made, order=True), [[made], [ordered]])


def test_a_slave_takes_over_table_and_version_as_they_are() -> None:
    told = Told()
    manager = told.manager()
    manager.update([TopicConfig(topic_name="Old")])
    config, version = TopicConfig(topic_name="New"), DataVersion(state_version=1, timestamp=2, counter=3)
    manager.replace_all({"New": config}, version)
    assert (manager.topics, manager.data_version, told.changes[-1]) == ({"New": config}, version, None)
