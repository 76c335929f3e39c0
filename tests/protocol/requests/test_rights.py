"""Rights of each request: the table is complete, and finds the names in requests."""

from __future__ import annotations

import pytest

from twisted_mq.protocol import bodies
from twisted_mq.protocol.bodies import encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.requests.rights import ADMINISTRATION, CLIENTS, RIGHTS, SERVERS
from twisted_mq.protocol.wire.command import RemotingCommand


def needs(code: RequestCode, fields: dict[str, str] | None = None, body: object = None) -> tuple[list[str], list[str]]:
    """The topics and groups that a request names."""
    command = RemotingCommand.request(code, fields, b"" if body is None else encode_body(body))
    return list(RIGHTS[code].topics(command)), list(RIGHTS[code].groups(command))


def test_every_request_to_a_broker_or_name_server_has_a_row() -> None:
    asked = {code for code, spec in REQUESTS.items() if {"broker", "namesrv"} & set(spec.served_by)}
    assert set(RIGHTS) >= asked


def test_no_request_has_two_rows() -> None:
    assert len(RIGHTS) == len(CLIENTS) + len(ADMINISTRATION) + len(SERVERS)


def test_what_changes_something_is_for_nobody_without_a_right() -> None:
    """Requests without a right have only a client's own data, or read routes that belong to no user."""
    assert {code for code, rights in RIGHTS.items() if rights.for_all} == {
        RequestCode.END_TRANSACTION,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
    }
    assert all(rights.actions for code, rights in RIGHTS.items() if not rights.for_all)


@pytest.mark.parametrize(
    ("code", "fields", "expected"),
    [
        (RequestCode.SEND_MESSAGE, {"topic": "T", "producerGroup": "P"}, (["T"], [])),
        (RequestCode.SEND_MESSAGE_V2, {"b": "T", "a": "P", "topic": "U"}, (["T"], [])),
        (RequestCode.PULL_MESSAGE, {"topic": "T", "consumerGroup": "G"}, (["T"], ["G"])),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "G", "originTopic": "T"}, ([], ["G"])),
        (RequestCode.END_TRANSACTION, {}, ([], [])),
        (RequestCode.UNREGISTER_CLIENT, {"producerGroup": "P"}, ([], [])),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"}, ([], [])),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}, (["T"], [])),
        (
            RequestCode.GET_CONSUME_STATS,
            {"consumerGroup": "G", "topic": "", "topicList": "A;B;"},
            (["A", "B"], ["G"]),
        ),
        (RequestCode.QUERY_CORRECTION_OFFSET, {"filterGroups": "A,B", "compareGroup": "C"}, ([], ["A", "B", "C"])),
        (RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "A", "destGroup": "B", "topic": "T"}, (["T"], ["A", "B"])),
        (RequestCode.UPDATE_BROKER_CONFIG, {"topic": "T"}, ([], [])),
    ],
)
def test_names_in_fields(code: RequestCode, fields: dict[str, str], expected: object) -> None:
    assert needs(code, fields) == expected


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (
            RequestCode.HEART_BEAT,
            bodies.HeartbeatData(
                producer_data_set=[bodies.ProducerData(group_name="P")],
                consumer_data_set=[
                    bodies.ConsumerData(
                        group_name="G",
                        subscription_data_set=[
                            bodies.SubscriptionData(topic="T"),
                            bodies.SubscriptionData(topic="%RETRY%G"),
                        ],
                    )
                ],
            ),
            (["T", "%RETRY%G"], ["G"]),
        ),
        (
            RequestCode.LOCK_BATCH_MQ,
            bodies.LockBatchRequestBody(consumer_group="G", mq_set=[bodies.MessageQueue("T", "b", 0)]),
            (["T"], ["G"]),
        ),
        (
            RequestCode.UNLOCK_BATCH_MQ,
            bodies.UnlockBatchRequestBody(consumer_group="G", mq_set=[bodies.MessageQueue("T", "b", 0)]),
            (["T"], ["G"]),
        ),
        (
            RequestCode.CHECK_CLIENT_CONFIG,
            bodies.CheckClientRequestBody(group="G", subscription_data=bodies.SubscriptionData(topic="T")),
            (["T"], ["G"]),
        ),
        (
            RequestCode.QUERY_ASSIGNMENT,
            bodies.QueryAssignmentRequestBody(topic="T", consumer_group="G"),
            (["T"], ["G"]),
        ),
        (
            RequestCode.SET_MESSAGE_REQUEST_MODE,
            bodies.SetMessageRequestModeRequestBody(topic="T", consumer_group="G"),
            (["T"], ["G"]),
        ),
        (
            RequestCode.BATCH_ACK_MESSAGE,
            bodies.BatchAckMessageRequestBody(acks=[bodies.BatchAck(consumer_group="G", topic="T")]),
            (["T"], ["G"]),
        ),
        (
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
            bodies.CreateTopicListRequestBody([bodies.TopicConfig("A"), bodies.TopicConfig("B")]),
            (["A", "B"], []),
        ),
        (
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            bodies.SubscriptionGroupConfig(group_name="G"),
            ([], ["G"]),
        ),
        (
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            bodies.SubscriptionGroupList([bodies.SubscriptionGroupConfig(group_name="G")]),
            ([], ["G"]),
        ),
    ],
)
def test_names_in_bodies(code: RequestCode, body: object, expected: object) -> None:
    assert needs(code, {}, body) == expected
    assert RIGHTS[code].reads_body
