"""The figures that clusterList and brokerStatus show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.broker import BrokerInMemory
from tests.twisted_mq.broker.processors.test_pull import pull
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.broker.processors.runtime_info import human_bytes, human_time
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.protocol.bodies import GroupList, HAConnectionRuntimeInfo, HARuntimeInfo, KVTable, decode_body


def test_rates_cover_the_three_windows() -> None:
    statistics = BrokerStatistics(100.0)
    for second in range(1, 31):
        statistics.count_put("T", 10 if second <= 20 else 40, 0, queue_id=0)
        statistics.take_snapshot(100.0 + second)
    assert statistics.rates("put_messages") == "40.0 20.0 20.0"
    assert statistics.rates("get_found", "get_missed") == "0.0 0.0 0.0"


def test_runtime_info_has_apaches_keys() -> None:
    """The recorded ones, but those of a disk, which a store in memory does not have."""
    recorded = Path(__file__).parents[4] / "interop" / "captures" / "answers" / "mqadmin.json"
    wanted = set(json.loads(recorded.read_text())["answers"]["keys of brokerStatus"])
    table = decode_body(KVTable, BrokerInMemory().connect().ask(28).body).table
    shown = {key for key in table if not key.startswith("scheduleMessageOffset_")}
    assert wanted - shown == {"commitLogDirCapacity", "commitLogDiskRatio", "consumeQueueDiskRatio"}
    assert shown - wanted == set()


def test_rate_without_a_past_is_zero() -> None:
    assert BrokerStatistics(5.0).rates("put_messages") == "0.0 0.0 0.0"


def test_runtime_info_counts_what_was_sent_and_pulled() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for body in (b"a", b"b"):
        send(peer, body)
    pull(peer)
    pull(peer, offset=2)
    broker.clock.advance(1)
    broker.controller.statistics.take_snapshot(broker.clock.seconds())
    table = decode_body(KVTable, peer.ask(28).body).table
    assert (table["putTps"], table["getTransferredTps"]) == ("2.0 2.0 2.0", "2.0 2.0 2.0")
    assert (table["getFoundTps"], table["getMissTps"], table["getTotalTps"].split()[0]) == (
        "1.0 1.0 1.0",
        "1.0 1.0 1.0",
        "2.0",
    )
    assert table["putMessageTimesTotal"] == "2"
    assert table["commitLogMaxOffset"] == str(broker.store.max_physical_offset())
    assert (table["brokerVersionDesc"], table["runtime"]) == ("V5_3_3", "[ 0 days, 0 hours, 0 minutes, 1 seconds ]")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_average_size_is_that_of_the_stored_records(count: int) -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for _ in range(count):
        send(peer)
    average = broker.store.max_physical_offset() / (count or 1)
    assert decode_body(KVTable, peer.ask(28).body).table["putMessageAverageSize"] == str(average)


def test_nothing_waits_and_there_is_no_transient_pool() -> None:
    """As Apache's idle broker says it: the greatest number of 32 bits means that there is no pool."""
    table = decode_body(KVTable, BrokerInMemory().connect().ask(28).body).table
    ends = ("ThreadPoolQueueSize", "HeadWaitTimeMills")
    waiting = {name: value for name, value in table.items() if name.endswith(ends)}
    assert (len(waiting), set(waiting.values())) == (10, {"0"})
    assert table["remainTransientStoreBufferNumbs"] == "2147483647"


def test_earliest_message_is_the_logs_first_whatever_became_of_its_queue() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()

    def earliest() -> int:
        return int(decode_body(KVTable, peer.ask(28).body).table["earliestMessageTimeStamp"])

    assert earliest() == -1
    first = broker.now_ms()
    send(peer)
    broker.clock.advance(5)
    send(peer, topic="T2")
    broker.store.delete_topics(["T"])
    assert earliest() == first


def test_groups_of_a_topic_are_those_with_offsets() -> None:
    broker = BrokerInMemory()
    for group in ("G2", "G1"):
        broker.controller.offsets.commit(group, "T", 0, 5)
    broker.controller.offsets.commit("other", "T2", 0, 5)
    answer = broker.connect().ask(300, {"topic": "T"})
    assert list(decode_body(GroupList, answer.body).group_list) == ["G1", "G2"]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (3 << 50, "3072.0 TiB")]
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_time_for_people() -> None:
    assert human_time(90061) == "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"


def test_masters_slaves_are_rows_and_a_slaves_own_state_is_none() -> None:
    broker = BrokerInMemory()
    slave = HAConnectionRuntimeInfo("127.0.0.1:50001", 4000, 1000, False, 3072, 5000)
    for master, rows in ((True, ["haSlave_127.0.0.1:50001"]), (False, [])):
        info = HARuntimeInfo(master=master, ha_connection_info=[slave])
        broker.controller.ha.runtime_info = lambda info=info: info  # type: ignore[method-assign]
        table = decode_body(KVTable, broker.connect().ask(28).body).table
        assert [key for key in table if key.startswith("haSlave_")] == rows
