"""updateStaticTopic and remappingStaticTopic: whom they ask and tell, in which order, and what they write down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet import defer

from tests.twisted_mq.cli.admin.recorded import run
from twisted_mq.cli.admin.static_mapping import created
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import (
    BrokerData,
    ClusterInfo,
    MessageQueue,
    TopicOffset,
    TopicQueueMappingDetail,
    TopicRemappingDetailWrapper,
    TopicStatsTable,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand

CLUSTER = ClusterInfo(
    broker_addr_table={name: BrokerData("C", name, {0: f"{name}:1"}) for name in ("a", "b", "c")},
    cluster_addr_table={"C": ["a", "b", "c"]},
)


class Brokers:
    """Three brokers with a plan, which requests replace; requests are recorded."""

    def __init__(self, plan: Any, end: int = 0) -> None:
        self.plan = dict(plan)
        self.end = end
        self.told: list[tuple[str, TopicQueueMappingDetail, dict[str, str]]] = []

    def invoke(self, address: str, command: RemotingCommand, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        return defer.succeed(self.answer(address.partition(":")[0], command))

    def answer(self, broker: str, command: RemotingCommand) -> RemotingCommand:
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return RemotingCommand(code=0, body=encode_body(CLUSTER))
        if command.code == RequestCode.GET_TOPIC_CONFIG:
            assert command.ext_fields["lo"] == "true"  # without it Apache's broker leaves the mapping out
            held = self.plan.get(broker)
            return RemotingCommand(code=ResponseCode.TOPIC_NOT_EXIST) if held is None else self.body(held)
        if command.code == RequestCode.GET_TOPIC_STATS_INFO:
            queues = {MessageQueue("T", broker, queue): TopicOffset(0, self.end) for queue in range(4)}
            return self.body(TopicStatsTable(offset_table=queues))
        assert command.code == RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
        detail = decode_body(TopicQueueMappingDetail, command.body)
        self.told.append((broker, detail, dict(command.ext_fields)))
        return RemotingCommand(code=0)

    def body(self, value: Any) -> RemotingCommand:
        return RemotingCommand(code=0, body=encode_body(value))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_new_topic_is_told_to_all_brokers_of_the_cluster():
    brokers = Brokers({})
    lines, _ = run(brokers, "updateStaticTopic -b a,b -t T -qn 3")
    told = [(broker, {queue: pieces[-1].queue_id for queue, pieces in detail.hosted_queues.items()})
            for broker, detail, _ in brokers.told]  # fmt: skip
    assert told == [("a", {0: 0, 2: 1}), ("b", {1: 0}), ("c", {})]
    assert [fields["writeQueueNums"] for _, _, fields in brokers.told] == ["2", "1", "0"]
    assert [line.rpartition(" ")[0] for line in lines] == [
        "The old mapping data is written to file",
        "The new mapping data is written to file",
    ]


def test_a_mapping_that_was_written_down_is_set_again():
    lines, _ = run(Brokers({}), "updateStaticTopic -c C -t T -qn 3")
    brokers = Brokers({})
    run(brokers, f"updateStaticTopic -c C -t T -qn 3 -mf {lines[1].rpartition(' ')[2]}")
    assert [broker for broker, *_ in brokers.told] == ["a", "b", "c"]


def test_moving_tells_new_leaders_first_and_the_begin_of_their_offsets_last():
    brokers = Brokers(created("T", 2, ["a"], {}, 1000), end=12)
    lines, _ = run(brokers, "remappingStaticTopic -b b -t T")
    assert [broker for broker, *_ in brokers.told] == ["b", "a", "b", "c"]
    begins = [[pieces[-1].logic_offset for pieces in detail.hosted_queues.values()] for _, detail, _ in brokers.told]
    assert begins == [[-1, -1], [-1, -1], [10_000, 10_000], []]
    written = decode_body(TopicRemappingDetailWrapper, Path(lines[1].rpartition(" ")[2]).read_bytes())
    assert (written.type, written.broker_to_map_in, written.broker_to_map_out) == ("REMAPPING", ["b"], ["a"])


@pytest.mark.parametrize(
    ("line", "plan", "reason"),
    [
        ("remappingStaticTopic -b b -t T", {}, "No topic route to do the remapping"),
        ("updateStaticTopic -b z -t T -qn 2", {}, "Can't find addr for broker z"),
        ("updateStaticTopic -b a -t T -qn 1", created("T", 2, ["a"], {}, 1000), "a static topic only grows"),
        ("updateStaticTopic -b a -t T -qn 2 -mf /nosuch", {}, "No such file"),
    ],
)
def test_nothing_is_told_where_it_cannot_work(line, plan, reason):
    brokers = Brokers(plan)
    with pytest.raises(CliError, match=reason):
        run(brokers, line)
    assert brokers.told == []
