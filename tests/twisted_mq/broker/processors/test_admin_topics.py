"""Topics and groups changed by operators: what is answered, what is kept, what is registered."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from twisted.internet import defer
from twisted.logger import capturedLogs, formatEvent

from tests.support.broker import BrokerInMemory, Peer, anywhere
from twisted_mq.broker.processors import admin_topics
from twisted_mq.protocol.bodies import (
    DataVersion,
    MessageQueue,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicList,
    TopicOffset,
    TopicStatsTable,
    decode_body,
    encode_body,
    encode_row,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.interfaces import InnerMessage

UPDATE, DELETE = RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.DELETE_TOPIC_IN_BROKER
FILTER_TYPE_FAULT = "CreateTopicRequestHeader.topicFilterType: not one of ('SINGLE_TAG', 'MULTI_TAG'), got 'NEITHER'"
ILLEGAL = "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def header(topic: str = "T", **more: str) -> dict[str, str]:
    return {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "8", "writeQueueNums": "4", "perm": "6",
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"} | more  # fmt: skip


def update(broker: BrokerInMemory, topic: str = "T", **more: str) -> tuple[int, str | None]:
    answer = broker.connect().ask(UPDATE, header(topic, **more))
    return answer.code, answer.remark


def config(**more: object) -> TopicConfig:
    return TopicConfig(topic_name="T", read_queue_nums=8, write_queue_nums=4, perm=6, **more)  # type: ignore[arg-type]


def put(broker: BrokerInMemory, topic: str, queue_id: int) -> None:
    broker.store.put_message(InnerMessage(topic, queue_id, b"body", b"", {}, 0))
    broker.controller.dispatch()


def test_topic_is_made_saved_and_registered_and_an_equal_one_is_left_alone() -> None:
    broker = BrokerInMemory()
    before = broker.controller.topics.data_version.counter
    saved = broker.tables["topics"].saved
    assert update(broker) == (0, "not set any response code")
    assert update(broker) == (0, "not set any response code")
    assert (broker.controller.topics.get("T"), broker.registered) == (config(), [[config()]])
    version = broker.controller.topics.data_version
    assert version == DataVersion(state_version=0, timestamp=broker.now_ms(), counter=before + 1)
    assert broker.tables["topics"].saved == saved + 1


def test_topic_is_altered_and_keeps_attributes_that_are_not_named() -> None:
    broker = BrokerInMemory()
    update(broker, attributes="+message.type=FIFO")
    update(broker, perm="4", order="true")
    kept = TopicConfig(
        topic_name="T", read_queue_nums=8, write_queue_nums=4, perm=4, order=True, attributes={"message.type": "FIFO"}
    )
    assert broker.controller.topics.get("T") == kept
    update(broker, attributes="-message.type")
    assert broker.controller.topics.get("T") == config()


def test_the_answer_waits_until_the_name_servers_know_the_topic() -> None:
    waiting = defer.Deferred[None]()
    broker = BrokerInMemory(parts={"registered": lambda: waiting})
    peer = broker.connect()
    peer.send(RemotingCommand(UPDATE, language="JAVA", ext_fields=header()))
    assert peer.received() == []
    waiting.callback(None)
    assert [(one.code, one.is_response) for one in peer.received()] == [(0, True)]


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("../x", ILLEGAL),
        ("a b", ILLEGAL),
        ("a/b", ILLEGAL),
        ("T\u00e4", ILLEGAL),
        ("T\n", ILLEGAL),
        ("", "The specified topic is blank."),
        ("  ", "The specified topic is blank."),
        ("x" * 128, "The specified topic is longer than topic max length."),
        ("SCHEDULE_TOPIC_XXXX", "The topic[SCHEDULE_TOPIC_XXXX] is conflict with system topic."),
        ("rmq_sys_mine", "The topic[rmq_sys_mine] is conflict with system topic."),
    ],
)
def test_bad_topic_names_are_refused_and_make_nothing(topic: str, remark: str) -> None:
    broker = BrokerInMemory()
    before = set(broker.controller.topics.topics)
    assert update(broker, topic) == (ResponseCode.INVALID_PARAMETER, remark)
    assert (set(broker.controller.topics.topics), broker.registered) == (before, [])


def test_the_longest_name_is_accepted() -> None:
    assert update(BrokerInMemory(), "x" * 127) == (0, "not set any response code")


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"readQueueNums": "-1"}, (29, "readQueueNums: 0 to 65535 queues, got -1")),
        ({"writeQueueNums": "65536"}, (29, "writeQueueNums: 0 to 65535 queues, got 65536")),
        ({"readQueueNums": "many"}, (1, None)),
        (
            {"topicFilterType": "NEITHER"},
            (1, FILTER_TYPE_FAULT),
        ),
        ({"attributes": "+message.type=MIXED"}, (29, "MIXED message type is not supported.")),
        ({"attributes": "+colour=red"}, (1, "unsupported key: colour")),
        ({"attributes": "message.type=FIFO"}, (1, "add/alter attribute format is wrong: message.type")),
    ],
)
def test_bad_settings_are_refused_and_make_nothing(fields: dict[str, str], answer: tuple[int, str | None]) -> None:
    broker = BrokerInMemory()
    code, remark = update(broker, **fields)
    assert (code, remark if answer[1] is not None else None, bool(remark)) == (*answer, True)
    assert (broker.controller.topics.get("T"), broker.registered) == (None, [])


def test_topics_of_mixed_messages_and_system_topics_are_altered_where_that_is_allowed() -> None:
    broker = BrokerInMemory(enable_mixed_message_type=True, validate_system_topic_when_update_topic=False)
    assert update(broker, attributes="+message.type=MIXED")[0] == 0
    assert broker.controller.topics.get("T").attributes == {"message.type": "MIXED"}
    assert update(broker, topic="TBW102", readQueueNums="2", writeQueueNums="2")[0] == 0
    assert broker.controller.topics.get("TBW102").read_queue_nums == 2


def test_deleted_topic_takes_its_offsets_and_queues_along() -> None:
    broker = BrokerInMemory(queue_end=anywhere)
    update(broker)
    put(broker, "T", 0)
    broker.controller.offsets.commit("G", "T", 0, 1)
    broker.controller.offsets.commit("G", "T2", 0, 1)
    with capturedLogs() as logged:
        answer = broker.connect().ask(DELETE, {"topic": "T"})
        broker.connect().ask(DELETE, {"topic": "T"})
    assert (answer.code, answer.remark) == (0, None)
    lines = [formatEvent(one) for one in logged if "deleted" in one["log_format"]]
    assert [line.rpartition(":")[0] for line in lines] == ["topic deleted with its queues: topic=T peer=127.0.0.1"]
    assert (broker.controller.topics.get("T"), broker.registered[-1]) == (None, None)
    assert broker.controller.offsets.offsets == {"T2@G": {0: 1}}
    assert broker.store.queue_ids("T") == []


@pytest.mark.parametrize(
    ("topic", "code", "remark"),
    [
        ("Nowhere", 0, None),
        ("", 29, "The specified topic is blank."),
        ("TBW102", 29, "The topic[TBW102] is conflict with system topic."),
        ("../x", 0, None),
    ],
)
def test_deleting_what_is_not_there_or_not_the_users(topic: str, code: int, remark: str | None) -> None:
    broker = BrokerInMemory()
    before = dict(broker.controller.topics.topics)
    answer = broker.connect().ask(DELETE, {"topic": topic})
    assert (answer.code, answer.remark, broker.controller.topics.topics) == (code, remark, before)


def test_table_of_all_topics_has_its_version() -> None:
    broker = BrokerInMemory()
    update(broker)
    answer = broker.connect().ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    body = decode_body(TopicConfigAndMappingSerializeWrapper, answer.body)
    assert body.topic_config_table == broker.controller.topics.topics
    assert body.data_version == broker.controller.topics.data_version
    assert json.loads(answer.body)["topicConfigTable"]["T"] == {
        "attributes": {}, "order": False, "perm": 6, "readQueueNums": 8, "topicFilterType": "SINGLE_TAG",
        "topicName": "T", "topicSysFlag": 0, "writeQueueNums": 4,
    }  # fmt: skip


def test_one_topic_and_one_group_are_answered_or_named_as_unknown() -> None:
    broker = BrokerInMemory()
    update(broker)
    peer = broker.connect()
    found = peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "T"})
    assert decode_body(TopicConfig, found.body) == config()
    missing = peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "U"})
    assert (missing.code, missing.remark) == (17, "No topic in this broker. topic: U")
    nobody = peer.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
    assert (nobody.code, nobody.remark) == (26, "No group in this broker. group: G")


def test_topic_stats_name_each_queue_with_its_ends() -> None:
    broker = BrokerInMemory()
    update(broker, readQueueNums="2", writeQueueNums="2")
    put(broker, "T", 1)
    first = broker.now_ms()
    broker.clock.advance(5)
    put(broker, "T", 1)
    answer = broker.connect().ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"})
    queues = [MessageQueue(topic="T", broker_name="broker-cap", queue_id=number) for number in (0, 1)]
    assert decode_body(TopicStatsTable, answer.body).offset_table == {
        queues[0]: TopicOffset(min_offset=0, max_offset=0, last_update_timestamp=0),
        queues[1]: TopicOffset(min_offset=0, max_offset=2, last_update_timestamp=first + 5000),
    }
    missing = broker.connect().ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "U"})
    assert (missing.code, missing.remark) == (17, "topic[U] not exist")


def test_system_topics_are_listed() -> None:
    answer = BrokerInMemory().connect().ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    topics = decode_body(TopicList, answer.body).topic_list
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"} <= set(topics)


# groups


def put_group(peer: Peer, group: SubscriptionGroupConfig) -> tuple[int, str | None]:
    answer = peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(group))
    return answer.code, answer.remark


def test_group_is_made_altered_listed_and_deleted() -> None:
    broker = BrokerInMemory(queue_end=anywhere)
    peer = broker.connect()
    group = SubscriptionGroupConfig(group_name="G", retry_max_times=3, retry_queue_nums=2)
    assert put_group(peer, group) == (0, None)
    found = peer.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
    assert decode_body(SubscriptionGroupConfig, found.body) == group
    table = decode_body(SubscriptionGroupWrapper, peer.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
    assert (table.subscription_group_table, table.data_version) == (
        broker.controller.groups.groups,
        broker.controller.groups.data_version,
    )
    broker.controller.offsets.commit("G", "T", 0, 1)
    for one in ("G", "H"):
        broker.controller.statistics.count_get("T", one, 1, 100, queue_id=0)
    assert peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G"}).code == 0
    assert [key for key in broker.controller.statistics.gets if key.startswith("T@")] == ["T@H"]
    assert broker.controller.groups.groups.get("G") is None
    assert broker.controller.offsets.offsets == {"T@G": {0: 1}}


@pytest.mark.parametrize(
    ("code", "body_class", "change"),
    [
        (201, SubscriptionGroupWrapper, lambda peer, name: put_group(peer, SubscriptionGroupConfig(name))),
        (21, TopicConfigAndMappingSerializeWrapper, lambda peer, name: peer.ask(UPDATE, header(name))),
    ],
)
def test_whole_tables_encode_only_rows_that_changed(
    monkeypatch: pytest.MonkeyPatch, code: int, body_class: type, change: Callable[[Peer, str], object]
) -> None:
    encoded: list[str] = []

    def noted(name: str, row: object) -> bytes:
        encoded.append(name)
        return encode_row(name, row)

    monkeypatch.setattr(admin_topics, "encode_row", noted)
    broker = BrokerInMemory(queue_end=anywhere)
    peer = broker.connect()
    for name in ("One", "Two"):
        change(peer, name)
    first = peer.ask(code).body
    assert {"One", "Two"} <= set(encoded)
    encoded.clear()
    change(peer, "Three")
    second = peer.ask(code).body
    assert encoded == ["Three"]
    assert first != second == encode_body(decode_body(body_class, second))


@pytest.mark.parametrize("count", [-1, 65536, 2**31 - 1])
def test_a_group_cannot_have_any_number_of_retry_queues(count: int) -> None:
    """A topic is made of them at the group's first heartbeat."""
    broker = BrokerInMemory()
    peer, remark = broker.connect(), f"retryQueueNums: 0 to 65535 queues, got {count}"
    refused = SubscriptionGroupConfig(group_name="G", retry_queue_nums=count)
    assert put_group(peer, refused) == (ResponseCode.INVALID_PARAMETER, remark)
    body = encode_body(SubscriptionGroupList(group_config_list=[SubscriptionGroupConfig(group_name="F"), refused]))
    many = peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)
    assert (many.code, many.remark) == (ResponseCode.INVALID_PARAMETER, remark)
    assert not {"F", "G"} & set(broker.controller.groups.groups)


def test_topics_and_groups_may_have_no_queues() -> None:
    broker = BrokerInMemory()
    assert update(broker, readQueueNums="0", writeQueueNums="0") == (0, "not set any response code")
    made = broker.controller.topics.get("T")
    assert made is not None and (made.read_queue_nums, made.write_queue_nums) == (0, 0)
    assert put_group(broker.connect(), SubscriptionGroupConfig(group_name="G", retry_queue_nums=0))[0] == 0
    assert broker.controller.groups.groups["G"].retry_queue_nums == 0


def test_retry_queues_of_a_table_from_elsewhere_are_bounded() -> None:
    broker = BrokerInMemory()
    assert broker.controller.topics.create_for_group("%RETRY%G", 2**31 - 1).read_queue_nums == 65535


def test_offsets_go_with_the_group_where_that_is_asked_for() -> None:
    broker = BrokerInMemory(queue_end=anywhere)
    for group in ("G", "OtherG"):
        broker.controller.offsets.commit(group, "T", 0, 1)
    peer = broker.connect()
    assert peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G", "cleanOffset": "true"}).code == 0
    assert broker.controller.offsets.offsets == {"T@OtherG": {0: 1}}


@pytest.mark.parametrize("name", ["../x", "a b", "", "x" * 256])
def test_bad_group_names_are_refused(name: str) -> None:
    broker = BrokerInMemory()
    before = dict(broker.controller.groups.groups)
    code, remark = put_group(broker.connect(), SubscriptionGroupConfig(group_name=name))
    assert (code, bool(remark), broker.controller.groups.groups) == (ResponseCode.INVALID_PARAMETER, True, before)


def test_a_body_that_cannot_be_read_is_refused() -> None:
    peer = BrokerInMemory().connect()
    answer = peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b"{")
    assert (answer.code, bool(answer.remark)) == (ResponseCode.SYSTEM_ERROR, True)
