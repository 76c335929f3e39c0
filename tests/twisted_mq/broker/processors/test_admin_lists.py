"""Many topics or groups at once, and groups that may not read a topic."""

from __future__ import annotations

from tests.support.broker import BrokerInMemory, Peer
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_pull import pull
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.bodies import (
    CreateTopicListRequestBody,
    GroupForbidden,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    TopicConfig,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand


def update_topics(peer: Peer, *topics: TopicConfig) -> RemotingCommand:
    body = encode_body(CreateTopicListRequestBody(topic_config_list=list(topics)))
    return peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)


def test_topics_are_made_together_and_registered_once() -> None:
    broker = BrokerInMemory()
    broker.registered.clear()
    first, second = TopicConfig(topic_name="A", read_queue_nums=2), TopicConfig(topic_name="B", perm=4)
    assert update_topics(broker.connect(), first, second).code == 0
    assert (broker.controller.topics.get("A"), broker.controller.topics.get("B")) == (first, second)
    assert broker.registered == [[first, second]]
    assert update_topics(broker.connect(), first, second).code == 0
    assert broker.registered == [[first, second]]


def test_one_bad_topic_stops_all() -> None:
    broker = BrokerInMemory()
    for bad in (
        TopicConfig(topic_name="bad!"),
        TopicConfig(topic_name="TBW102"),
        TopicConfig(topic_name=None),
        TopicConfig(topic_name="T", write_queue_nums=70_000),
    ):
        answer = update_topics(broker.connect(), TopicConfig(topic_name="good"), bad)
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert answer.remark
    assert broker.controller.topics.get("good") is None


def test_groups_are_made_together_or_not_at_all() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()

    def update(*names: str) -> RemotingCommand:
        groups = [SubscriptionGroupConfig(group_name=name, retry_max_times=3) for name in names]
        body = encode_body(SubscriptionGroupList(group_config_list=groups))
        return peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)

    answer = update("A", "b a d")
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert answer.remark is not None and "'b a d'" in answer.remark
    assert "A" not in broker.controller.groups.groups
    assert update("A", "B").code == 0
    assert [broker.controller.groups.groups[name].retry_max_times for name in "AB"] == [3, 3]


def test_a_group_that_may_not_read_is_refused_until_it_may_again() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    heartbeat(peer, "G", "T")

    def forbid(**more: str) -> GroupForbidden:
        answer = peer.ask(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, {"group": "G", "topic": "T", **more})
        return decode_body(GroupForbidden, answer.body)

    assert forbid() == GroupForbidden(topic="T", group="G", readable=True)
    assert forbid(readable="false").readable is False
    assert broker.tables["groups"].forbidden == {"G": {"T": 4}}
    refused = pull(peer, sys_flag=2)
    assert (refused.code, refused.remark) == (
        ResponseCode.NO_PERMISSION,
        "the consumer group[G] is forbidden for topic[T]",
    )
    assert refused.ext_fields["forbiddenType"] == "5"
    assert forbid(readable="true").readable is True
    assert broker.tables["groups"].forbidden == {}
    assert pull(peer, sys_flag=2, subVersion="0").code == 0
