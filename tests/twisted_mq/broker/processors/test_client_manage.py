"""Heartbeats, goodbyes and lost connections: what the broker answers, notes, and tells the rest of a group."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.captures import frames
from tests.twisted_mq.broker.test_long_answers import turn
from twisted_mq import turns
from twisted_mq.broker.clients.change_notices import NOTICES_OF_SLICE
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.producer_manager import GROUPS_OF_SLICE
from twisted_mq.protocol.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder

LIST = RequestCode.GET_CONSUMER_LIST_BY_GROUP
IDS_CHANGED = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
V2 = "IS_SUPPORT_HEART_BEAT_V2"
CHANGE = "IS_SUB_CHANGE"


def consumer(group: str = "G", *topics: str, version: int = 1, **more: Any) -> ConsumerData:
    subscriptions = [
        SubscriptionData(topic=topic, sub_string="*", sub_version=version) for topic in (topics or ("TopicTest",))
    ]
    return ConsumerData(group_name=group, subscription_data_set=subscriptions, **more)


def beat(peer: Peer, client_id: str, *consumers: ConsumerData, **more: Any) -> RemotingCommand:
    """The answer to a heartbeat; notices to the same peer are left out."""
    data = HeartbeatData(client_id=client_id, consumer_data_set=list(consumers), **more)
    peer.send(RemotingCommand(RequestCode.HEART_BEAT, body=encode_body(data), language="JAVA"))
    answers = [one for one in peer.received() if one.is_response]
    assert len(answers) == 1
    return answers[0]


def notices(peer: Peer) -> list[tuple[int, bool, dict[str, str]]]:
    return [(one.code, one.is_one_way, dict(one.ext_fields)) for one in peer.received()]


def members(broker: BrokerInMemory, group: str = "G") -> list[str]:
    answer = broker.connect().ask(LIST, {"consumerGroup": group})
    return list(decode_body(GetConsumerListByGroupResponseBody, answer.body).consumer_id_list)


def told(group: str = "G") -> list[tuple[int, bool, dict[str, str]]]:
    return [(IDS_CHANGED, True, {"consumerGroup": group})]


def test_first_heartbeat_registers_consumers_producers_and_the_groups_retry_topic() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    answer = beat(peer, "c1", consumer(), producer_data_set=[ProducerData(group_name="P")])
    assert (answer.code, answer.remark, dict(answer.ext_fields)) == (0, None, {V2: "true", CHANGE: "true"})
    assert members(broker) == ["c1"]
    assert broker.controller.producers.find_channel("c1") is peer.channel
    retry = broker.controller.topics.get("%RETRY%G")
    assert retry == TopicConfig(topic_name="%RETRY%G", read_queue_nums=1, write_queue_nums=1, perm=6)
    assert broker.registered == [[retry]]
    beat(peer, "c1", consumer())
    assert broker.registered == [[retry]]


def test_registrations_and_their_time_are_counted() -> None:
    broker = BrokerInMemory()
    register = ConsumerManager.register

    def slow(*given: Any, **more: Any) -> None:
        broker.clock.advance(0.003)
        register(*given, **more)

    with patch.object(ConsumerManager, "register", slow):
        beat(broker.connect(), "c1", consumer("G"), consumer("H"), producer_data_set=[ProducerData(group_name="P")])
    counted = broker.controller.statistics.registrations
    assert {kind: (one.messages, one.bytes, one.elapsed_ms) for kind, one in counted.items()} == {
        "CONSUMER": (2, 0, 6),
        "PRODUCER": (1, 0, 0),
    }


def test_retry_topic_of_a_group_in_unit_mode_is_marked() -> None:
    broker = BrokerInMemory()
    beat(broker.connect(), "c1", consumer(unit_mode=True))
    config = broker.controller.topics.get("%RETRY%G")
    assert config is not None and config.topic_sys_flag == 2


def test_a_new_member_is_told_to_all_and_a_repeated_heartbeat_to_nobody() -> None:
    broker = BrokerInMemory()
    first, second = broker.connect(), broker.connect()
    beat(first, "c1", consumer())
    beat(second, "c2", consumer())
    assert notices(first) == told()
    beat(first, "c1", consumer())
    beat(second, "c2", consumer())
    assert (notices(first), notices(second)) == ([], [])
    assert members(broker) == ["c1", "c2"]


def test_another_topic_in_the_subscriptions_is_told_to_the_group() -> None:
    broker = BrokerInMemory()
    first, second = broker.connect(), broker.connect()
    beat(first, "c1", consumer())
    beat(second, "c2", consumer())
    first.received()
    beat(second, "c2", consumer("G", "TopicTest", "TopicMore"))
    assert notices(first) == told()


@pytest.mark.parametrize("leave", ["unregister", "lost connection"])
def test_leaving_is_told_to_the_rest_of_the_group_only(leave: str) -> None:
    broker = BrokerInMemory()
    peers = [broker.connect() for _ in range(3)]
    for number, peer in enumerate(peers):
        beat(peer, f"c{number}", consumer("Other" if number == 2 else "G"))
    for peer in peers:
        peer.received()
    if leave == "unregister":
        answer = peers[1].ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "G"})
        assert (answer.code, answer.remark) == (0, None)
    else:
        peers[1].channel.connectionLost()
    assert [notices(peer) for peer in peers] == [told(), [], []]
    assert (members(broker), members(broker, "Other")) == (["c0"], ["c2"])


def test_broadcast_groups_and_groups_that_do_not_want_it_are_not_told() -> None:
    broker = BrokerInMemory()
    broker.controller.groups.update(
        SubscriptionGroupConfig(group_name="Quiet", notify_consumer_ids_changed_enable=False)
    )
    first, second = broker.connect(), broker.connect()
    everywhere = consumer("B", message_model="BROADCASTING")
    for peer, name in ((first, "c1"), (second, "c2")):
        beat(peer, name, everywhere, consumer("Quiet"))
    assert notices(first) == []
    second.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "c2", "consumerGroup": "Quiet"})
    second.channel.connectionLost()
    assert (notices(first), members(broker, "B"), members(broker, "Quiet")) == ([], ["c1"], ["c1"])


def test_the_option_turns_all_notices_off() -> None:
    broker = BrokerInMemory(notify_consumer_ids_changed_enable=False)
    first, second = broker.connect(), broker.connect()
    beat(first, "c1", consumer())
    beat(second, "c2", consumer())
    assert notices(first) == []


def test_the_last_one_to_leave_takes_the_group_along() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    beat(peer, "c1", consumer(), producer_data_set=[ProducerData(group_name="P")])
    peer.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "G"})
    peer.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "producerGroup": "P"})
    answer = peer.ask(LIST, {"consumerGroup": "G"})
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer for this group, G")
    assert (broker.controller.consumers.groups, broker.controller.producers.groups) == ({}, {})


@pytest.mark.parametrize("fields", [{"consumerGroup": "Nobody"}, {"producerGroup": "Nobody"}, {}])
def test_unregistering_what_is_not_there_is_answered_with_success(fields: dict[str, str]) -> None:
    answer = BrokerInMemory().connect().ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", **fields})
    assert (answer.code, answer.remark) == (0, None)


def test_silent_clients_are_closed_after_120_s_and_the_rest_is_told() -> None:
    broker = BrokerInMemory()
    silent, alive, producer = broker.connect(), broker.connect(), broker.connect()
    beat(silent, "c1", consumer())
    beat(producer, "p1", producer_data_set=[ProducerData(group_name="P")])
    beat(alive, "c2", consumer())
    broker.clock.advance(120)
    beat(alive, "c2", consumer())
    broker.controller.close_expired_clients()
    assert members(broker) == ["c1", "c2"]
    alive.received()
    broker.clock.advance(0.001)
    broker.controller.close_expired_clients()
    assert (notices(alive), members(broker)) == (told(), ["c2"])
    closed = [peer.transport.disconnecting for peer in (silent, producer, alive)]
    assert (closed, broker.controller.producers.groups) == ([True, True, False], {})


def test_a_client_that_came_back_counts_once_while_its_old_connection_dies_slowly() -> None:
    broker = BrokerInMemory()
    old, other, new = broker.connect(), broker.connect(), broker.connect()
    beat(old, "c1", consumer())
    beat(other, "c2", consumer())
    beat(new, "c1", consumer())
    assert members(broker) == ["c1", "c2"]
    old.channel.connectionLost()
    assert members(broker) == ["c2", "c1"]


# heartbeat v2: a fingerprint stands for the subscriptions


def test_v2_tells_whether_the_fingerprint_of_the_group_changed() -> None:
    peer = BrokerInMemory().connect()
    marks = [7, 7, 8, 8, 0, 8]
    answers = [beat(peer, "c1", consumer(), heartbeat_fingerprint=mark) for mark in marks]
    assert [one.ext_fields[CHANGE] for one in answers] == ["false", "false", "true", "false", "true", "true"]
    assert {one.ext_fields[V2] for one in answers} == {"true"}


def test_v2_without_subscriptions_keeps_those_that_are_known() -> None:
    broker = BrokerInMemory()
    first, second = broker.connect(), broker.connect()
    beat(first, "c1", consumer("G", "TopicTest", "TopicMore"), heartbeat_fingerprint=7)
    empty = ConsumerData(group_name="G")
    beat(first, "c1", empty, heartbeat_fingerprint=7, without_sub=True)
    assert sorted(broker.controller.consumers.groups["G"].subscriptions) == ["TopicMore", "TopicTest"]
    beat(second, "c2", empty, heartbeat_fingerprint=7, without_sub=True)
    assert (notices(first), members(broker)) == (told(), ["c1", "c2"])


def test_without_sub_means_nothing_without_a_fingerprint() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    beat(peer, "c1", consumer("G", "TopicTest"))
    beat(peer, "c1", consumer("G", "TopicMore"), without_sub=True)
    assert list(broker.controller.consumers.groups["G"].subscriptions) == ["TopicMore"]


def test_an_older_subscription_does_not_replace_a_newer_one() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    for version in (5, 4, 6):
        beat(peer, "c1", consumer(version=version))
        known = broker.controller.consumers.subscription("G", "TopicTest")
        assert known is not None
        assert known.sub_version == max(5, version)
    assert broker.controller.consumers.subscription("G", "Unknown") is None
    assert broker.controller.consumers.subscription("Nobody", "TopicTest") is None


def test_unknown_groups_are_passed_over_where_groups_are_not_made_on_demand() -> None:
    broker = BrokerInMemory(auto_create_subscription_group=False)
    answer = beat(broker.connect(), "c1", consumer(), producer_data_set=[ProducerData(group_name="P")])
    assert (answer.code, broker.controller.consumers.groups) == (0, {})
    assert list(broker.controller.producers.groups) == ["P"]


@pytest.mark.parametrize("group", ["../x", "a b", "x" * 256, ""])
def test_illegal_group_names_make_neither_group_nor_topic(group: str) -> None:
    broker = BrokerInMemory()
    before = (set(broker.controller.groups.groups), set(broker.controller.topics.topics))
    answer = beat(broker.connect(), "c1", consumer(group))
    assert (answer.code, broker.controller.consumers.groups) == (0, {})
    assert (set(broker.controller.groups.groups), set(broker.controller.topics.topics)) == before


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"consumerDataSet":7}', b"\xff\xfe", b"null"])
def test_a_heartbeat_that_cannot_be_read_is_refused_and_the_connection_lives_on(body: bytes) -> None:
    peer = BrokerInMemory().connect()
    answer = peer.ask(RequestCode.HEART_BEAT, body=body)
    assert (answer.code, bool(answer.remark)) == (ResponseCode.SYSTEM_ERROR, True)
    assert beat(peer, "c1", consumer()).code == 0


def test_heartbeats_of_the_cpp_client_are_answered_as_apache_answers_them() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    recorded = [one for one in FrameDecoder().receive_data(frames("cpp_client")) if one.code == RequestCode.HEART_BEAT]
    asked = [one for one in recorded if not one.is_response]
    assert asked
    for one in asked:
        one.opaque = 0
        peer.send(one)
        (answer,) = [frame for frame in peer.received() if frame.is_response]
        assert (answer.code, dict(answer.ext_fields)) == (0, {V2: "true", CHANGE: "true"})
    clients = [client for info in broker.controller.consumers.groups.values() for client in info.clients.values()]
    assert {client.language for client in clients} == {"CPP"}


# check of a subscription before the client starts


def check(broker: BrokerInMemory, **subscription: Any) -> tuple[int, str | None]:
    body = CheckClientRequestBody(
        client_id="c1", group="G", subscription_data=SubscriptionData(topic="TopicTest", **subscription)
    )
    answer = broker.connect().ask(RequestCode.CHECK_CLIENT_CONFIG, body=encode_body(body))
    return answer.code, answer.remark


def test_tags_pass_the_check_on_every_broker() -> None:
    assert check(BrokerInMemory(), sub_string="TagA || TagB", expression_type="TAG") == (0, None)


def test_sql_passes_the_check_only_where_it_is_served() -> None:
    refused = check(BrokerInMemory(), sub_string="a > 1", expression_type="SQL92")
    assert refused == (1, "The broker does not support consumer to filter message by SQL92")
    assert check(BrokerInMemory(enable_property_filter=True), sub_string="a > 1", expression_type="SQL92") == (0, None)


def test_bad_expression_is_refused_with_its_place() -> None:
    code, remark = check(BrokerInMemory(enable_property_filter=True), sub_string="a >", expression_type="SQL92")
    assert (code, bool(remark)) == (ResponseCode.SUBSCRIPTION_PARSE_FAILED, True)


def test_a_heartbeat_with_many_new_groups_is_one_change_of_the_topics() -> None:
    broker = BrokerInMemory()
    beat(broker.connect(), "c1", *(consumer(f"G{number}") for number in range(50)))
    ((*topics,),) = broker.registered
    assert [one.topic_name for one in topics] == [f"%RETRY%G{number}" for number in range(50)]


def test_a_client_that_takes_another_id_is_no_member_under_the_old_one() -> None:
    broker = BrokerInMemory()
    peer, other = broker.connect(), broker.connect()
    beat(other, "other", consumer())
    for number in range(3):
        beat(peer, f"c{number}", consumer(), producer_data_set=[ProducerData(group_name="P")])
    assert members(broker) == ["other", "c2"]
    assert [broker.controller.producers.find_channel(f"c{number}") for number in range(3)] == [None, None, peer.channel]


def many_groups() -> RemotingCommand:
    data = HeartbeatData(client_id="many", consumer_data_set=[consumer(f"G{number}") for number in range(1000)])
    return RemotingCommand(RequestCode.HEART_BEAT, body=encode_body(data), language="JAVA")


def test_others_have_their_turns_while_a_heartbeat_with_many_groups_is_registered() -> None:
    broker = BrokerInMemory()
    peer, other = broker.connect(), broker.connect()
    peer.send(many_groups())
    assert (peer.received(), beat(other, "other", consumer()).code) == ([], 0)
    assert list(broker.controller.consumers.groups) == ["G"]
    while not (answers := [one for one in peer.received() if one.is_response]):
        broker.clock.advance(0)
    assert answers[0].code == 0
    assert (members(broker, "G0"), members(broker, "G999"), members(broker)) == (["many"], ["many"], ["other"])


def test_a_client_that_leaves_while_its_groups_are_registered_is_in_none_of_them() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    peer.send(many_groups())
    peer.channel.connectionLost()
    for _ in range(30):
        broker.clock.advance(0)
    assert broker.controller.consumers.groups == {}


def test_a_connection_of_many_groups_leaves_them_in_slices() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    groups = [ProducerData(group_name=f"P{number}") for number in range(2 * GROUPS_OF_SLICE + 1)]
    body = encode_body(HeartbeatData(client_id="c1", producer_data_set=groups))
    peer.send(RemotingCommand(RequestCode.HEART_BEAT, body=body, language="JAVA"))
    broker.clock.pump([0] * 4)
    assert len(broker.controller.producers.groups) == len(groups)
    peer.channel.connectionLost()
    assert len(broker.controller.producers.groups) == len(groups) - GROUPS_OF_SLICE
    broker.clock.advance(0)
    broker.clock.advance(0)
    assert broker.controller.producers.groups == {}


def test_a_flood_of_changes_is_told_in_slices_and_each_group_once_for_all_of_them() -> None:
    broker = BrokerInMemory()
    peers = [broker.connect() for _ in range(2 * NOTICES_OF_SLICE)]
    for number, peer in enumerate(peers):
        beat(peer, f"c{number}", consumer("G"))
        broker.clock.pump([0, 0])
    for peer in peers:
        peer.received()
    for name in ("x", "y", "z"):  # one connection, which says each time that it is another client's
        beat(peers[0], name, consumer("G"))
    others = peers[1:]
    first = sum(len(notices(peer)) for peer in others)
    broker.clock.pump([0] * 6)
    assert (first, first + sum(len(notices(peer)) for peer in others)) == (NOTICES_OF_SLICE - 1, 2 * len(others))


def test_what_a_connection_leaves_is_bounded_and_goes_with_it() -> None:
    broker = BrokerInMemory(max_remembered_bytes_by_channel=60_000)
    peer, other = broker.connect(), broker.connect()
    budget = broker.traffic.budget
    assert beat(peer, "c1", consumer("G", *(f"T{number}" for number in range(50)))).code == 0
    once = budget.remembered_bytes
    assert once > 50 * len("T10")
    beat(peer, "c1", consumer("G", *(f"T{number}" for number in range(50))))
    assert budget.remembered_bytes == once
    answer = beat(peer, "c1", consumer("H", *(f"T{number}" for number in range(200))))
    assert (answer.code, "exceed the limit" in str(answer.remark)) == (ResponseCode.SYSTEM_BUSY, True)
    assert list(broker.controller.consumers.groups) == ["G"]
    answer = beat(peer, "c1", producer_data_set=[ProducerData(group_name=f"P{number}") for number in range(99)])
    assert answer.code == ResponseCode.SYSTEM_BUSY
    assert budget.remembered_bytes <= 60_000
    assert beat(other, "c2", consumer("G")).code == 0
    peer.received()
    peer.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "G"})
    assert budget.remembered_bytes < 60_000 - once + 2000
    peer.channel.connectionLost()
    other.channel.connectionLost()
    assert budget.remembered_bytes == 0


def test_producer_is_remembered_with_the_length_of_its_names() -> None:
    def remembered(client_id: str, group: str) -> int:
        broker = BrokerInMemory()
        beat(broker.connect(), client_id, producer_data_set=[ProducerData(group_name=group)])
        return broker.traffic.budget.remembered_bytes

    once = remembered("c", "P")
    assert [remembered("c" * 11, "P") - once, remembered("c", "P" * 21) - once] == [10, 20]


@pytest.mark.parametrize(
    ("member", "heartbeat"),
    [
        ("clientID", HeartbeatData(client_id="c" * 1025)),
        ("groupName", HeartbeatData(client_id="c", producer_data_set=[ProducerData(group_name="p" * 256)])),
    ],
)
def test_a_name_that_is_too_long_is_refused_by_its_member(member: str, heartbeat: HeartbeatData) -> None:
    broker = BrokerInMemory()
    answer = broker.connect().ask(RequestCode.HEART_BEAT, body=encode_body(heartbeat))
    assert (answer.code, str(answer.remark).partition("=")[0]) == (ResponseCode.INVALID_PARAMETER, member)
    assert broker.controller.producers.groups == {}


@pytest.mark.parametrize(
    ("count", "more_turns"), [(GROUPS_OF_SLICE - 1, 0), (GROUPS_OF_SLICE, 3), (2 * GROUPS_OF_SLICE, 5)]
)
def test_a_heartbeat_of_many_consumers_lets_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch, count: int, more_turns: int
) -> None:
    """Once for so many while retry topics are looked for, once while they are registered, and once behind the first turn."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    broker = BrokerInMemory()
    peer = broker.connect()
    body = encode_body(HeartbeatData(client_id="c1", consumer_data_set=[consumer(f"G{n}") for n in range(count)]))
    beating = RemotingCommand(RequestCode.HEART_BEAT, body=body, language="JAVA")
    for _ in range(2):
        taken = 0
        peer.send(beating)
        while not any(one.is_response for one in peer.received()):
            assert turn(broker.clock)
            taken += 1
    assert (taken, len(members(broker, f"G{count - 1}"))) == (more_turns, 1)
