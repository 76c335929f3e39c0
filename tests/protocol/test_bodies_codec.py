"""Bodies from and to JSON: what other languages' clients send, wrong values, maps with queues as keys."""

from __future__ import annotations

import contextlib
import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.bodies import (
    AclInfo,
    BrokerData,
    Connection,
    ConsumerData,
    ConsumerOffsetSerializeWrapper,
    ConsumeStats,
    DataVersion,
    HeartbeatData,
    LockBatchResponseBody,
    MessageQueue,
    OffsetWrapper,
    ProducerData,
    ResetOffsetBody,
    SubscriptionData,
    TopicConfig,
    TopicRouteData,
    UserInfo,
    decode_body,
    decode_value,
    encode_body,
    to_value,
)
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.requests.registry import REQUESTS, Payload

CPP_HEARTBEAT = (
    b'{"clientID":"4597-127.0.0.1@DEFAULT","consumerDataSet":[{"consumeFromWhere":0,"consumeType":1,'
    b'"groupName":"CG_cpp","messageModel":1,"subscriptionDataSet":[{"subString":"*","subVersion":"1795218823175",'
    b'"topic":"CapCpp"}]}]}\n'
)


def test_heartbeat_of_the_cpp_client() -> None:
    """Enums as ordinals, a number as text, a newline at the end, members missing (from cpp_client.frames)."""
    subscription = SubscriptionData(topic="CapCpp", sub_string="*", sub_version=1795218823175)
    consumer = ConsumerData(
        group_name="CG_cpp",
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=[subscription],
    )
    assert decode_body(HeartbeatData, CPP_HEARTBEAT) == HeartbeatData(
        client_id="4597-127.0.0.1@DEFAULT", consumer_data_set=[consumer]
    )


def test_unknown_members_are_ignored_and_null_means_absent() -> None:
    data = b'{"brokerName":"b","brokerAddrs":null,"cluster":null,"new":{"in":[6]},"zoneName":null}'
    assert decode_body(BrokerData, data) == BrokerData(broker_name="b")


@pytest.mark.parametrize("data", [b'{"brokerAddrs":{0:"x",1:"y"}}', b'{"brokerAddrs":{"0":"x","1":"y"}}'])
def test_integer_keys_are_read_in_both_forms(data: bytes) -> None:
    assert decode_body(BrokerData, data) == BrokerData(broker_addrs={0: "x", 1: "y"})


@pytest.mark.parametrize(
    "data",
    [
        b'{"offsetTable":{{"brokerName":"b","queueId":2,"topic":"T"}:{"brokerOffset":9,"consumerOffset":7}}}',
        b'{"offsetTable":{"{\\"topic\\":\\"T\\",\\"brokerName\\":\\"b\\",\\"queueId\\":2}":{"brokerOffset":9,"consumerOffset":7}}}',
    ],
    ids=["object", "text"],
)
def test_queues_as_keys_are_read_in_both_forms(data: bytes) -> None:
    table = {MessageQueue("T", "b", 2): OffsetWrapper(broker_offset=9, consumer_offset=7)}
    assert decode_body(ConsumeStats, data) == ConsumeStats(offset_table=table)


def test_queues_as_keys_are_written_in_both_forms() -> None:
    body = ResetOffsetBody(offset_table={MessageQueue("T", "b", 2): 3})
    assert encode_body(body) == b'{"offsetTable":{{"brokerName":"b","queueId":2,"topic":"T"}:3}}'
    assert encode_body(body, standard=True) == (
        b'{"offsetTable":{"{\\"brokerName\\":\\"b\\",\\"queueId\\":2,\\"topic\\":\\"T\\"}":3}}'
    )


def test_route_is_written_in_both_forms() -> None:
    route = TopicRouteData(broker_datas=[BrokerData("c", "b", {0: "1.2.3.4:10911"})])
    head, tail = b'{"brokerDatas":[{"brokerAddrs":{', b':"1.2.3.4:10911"},"brokerName":"b","cluster":"c"'
    assert encode_body(route).startswith(head + b"0" + tail)
    assert encode_body(route, standard=True).startswith(head + b'"0"' + tail)


def test_members_that_are_none_are_left_out() -> None:
    assert encode_body(UserInfo(username="u")) == b'{"username":"u"}'


def test_lists_of_bodies() -> None:
    users = [UserInfo(username="a"), UserInfo(username="b", user_type="Super")]
    data = b'[{"username":"a"},{"userType":"Super","username":"b"}]'
    assert encode_body(users) == data
    assert decode_body(list[UserInfo], data) == users


def test_member_with_a_name_of_its_own() -> None:
    body = LockBatchResponseBody([MessageQueue("T", "b", 0)])
    assert encode_body(body) == b'{"lockOKMQSet":[{"brokerName":"b","queueId":0,"topic":"T"}]}'


def test_sets_are_written_sorted() -> None:
    subscription = SubscriptionData(topic="T", sub_string="b||a", tags_set=["b", "a"], code_set=[98, 97])
    assert to_value(subscription)["tagsSet"] == ["a", "b"]
    assert to_value(subscription)["codeSet"] == [97, 98]


class Permission(enum.IntFlag):
    READ = 4
    WRITE = 2


def test_numbers_of_a_subclass_are_written_as_numbers() -> None:
    body = TopicConfig(topic_name="T", perm=Permission.READ | Permission.WRITE)
    assert encode_body(body) == encode_body(TopicConfig(topic_name="T", perm=6))


def test_a_change_makes_the_next_version() -> None:
    assert DataVersion(0, 5, 7).next_version(now_ms=1000, state_version=2) == DataVersion(2, 1000, 8)


WRONG: dict[str, tuple[Any, bytes, str]] = {
    "no object": (BrokerData, b"[1]", "BrokerData: expected an object, got [1]"),
    "text for a number": (TopicConfig, b'{"perm":"six"}', "TopicConfig.perm: expected an integer, got 'six'"),
    "fraction": (TopicConfig, b'{"perm":6.5}', "TopicConfig.perm: expected an integer, got 6.5"),
    "past 32 bits": (
        TopicConfig,
        b'{"perm":2147483648}',
        "TopicConfig.perm: expected an integer of 32 bits, got 2147483648",
    ),
    "past 64 bits": (
        DataVersion,
        b'{"counter":9223372036854775808}',
        "DataVersion.counter: expected an integer of 64 bits, got 9223372036854775808",
    ),
    "number for a boolean": (TopicConfig, b'{"order":2}', "TopicConfig.order: expected a boolean, got 2"),
    "unknown enum": (
        TopicConfig,
        b'{"topicFilterType":"X"}',
        "TopicConfig.topicFilterType: expected one of SINGLE_TAG, MULTI_TAG, got 'X'",
    ),
    "ordinal past the enum": (
        TopicConfig,
        b'{"topicFilterType":2}',
        "TopicConfig.topicFilterType: expected one of SINGLE_TAG, MULTI_TAG, got 2",
    ),
    "object for text": (ProducerData, b'{"groupName":{}}', "ProducerData.groupName: expected text, got {}"),
    "in an item of a list": (
        HeartbeatData,
        b'{"producerDataSet":[{},{"groupName":[]}]}',
        "HeartbeatData.producerDataSet[1].groupName: expected text, got []",
    ),
    "in a map": (
        ConsumerOffsetSerializeWrapper,
        b'{"offsetTable":{"T@g":{0:"x"}}}',
        "ConsumerOffsetSerializeWrapper.offsetTable{T@g}{0}: expected an integer, got 'x'",
    ),
    "key of a map": (BrokerData, b'{"brokerAddrs":{a:"x"}}', "BrokerData.brokerAddrs{a}: expected an integer, got 'a'"),
    "queue as key": (
        ResetOffsetBody,
        b'{"offsetTable":{"T":3}}',
        "ResetOffsetBody.offsetTable{T}: JSON: expected a value at character 0, found 'T'",
    ),
    "in a list of bodies": (
        list[UserInfo],
        b'[{"username":{}}]',
        "list of UserInfo[0].username: expected text, got {}",
    ),
    "no list": (AclInfo, b'{"policies":{}}', "AclInfo.policies: expected an array, got {}"),
    "no number": (ConsumeStats, b'{"consumeTps":"fast"}', "ConsumeStats.consumeTps: expected a number, got 'fast'"),
    "no JSON": (ConsumeStats, b"{not json", "ConsumeStats: no JSON: expected ':' at character 5, found 'json'"),
    "nothing": (ConsumeStats, b"", "ConsumeStats: no JSON: expected a value at character 0, found ''"),
}


@pytest.mark.parametrize(("body_class", "data", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_values_are_refused_with_the_path_to_them(body_class: Any, data: bytes, reason: str) -> None:
    with pytest.raises(BodyError) as caught:
        decode_body(body_class, data)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "value"), [(b'"true"', True), (b'"FALSE"', False), (b"1", True), (b'"0"', False)], ids=repr
)
def test_booleans_in_other_forms(text: bytes, value: bool) -> None:
    assert decode_body(TopicConfig, b'{"order":%b}' % text) == TopicConfig(order=value)


def test_numbers_as_text_and_text_as_numbers() -> None:
    assert decode_body(Connection, b'{"clientId":17,"version":"479"}') == Connection(client_id="17", version=479)


BODY_CLASSES = sorted(
    {
        body
        for spec in REQUESTS.values()
        for body in (spec.request_body, spec.response_body)
        if body is not None and not isinstance(body, Payload)
    },
    key=str,
)
KEYS = st.sampled_from(
    ["offsetTable", "consumerDataSet", "topicConfigTable", "brokerAddrs", "mqSet", "perm", "0", "{}"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("body_class", BODY_CLASSES, ids=str)
@given(value=VALUES)
def test_no_json_value_raises_anything_but_body_error(body_class: Any, value: Any) -> None:
    with contextlib.suppress(BodyError):
        decode_value(body_class, value)


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_but_body_error(data: bytes) -> None:
    with contextlib.suppress(BodyError):
        decode_body(HeartbeatData, data)
