"""SQL92 subscriptions from the heartbeat to the pull's answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.broker.filter.expression import is_known
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.bodies import CheckClientRequestBody, ConsumerData, HeartbeatData, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.messages.subscription import build_subscription
from twisted_mq.protocol.wire.command import RemotingCommand

SUSPEND, SUBSCRIPTION = 2, 4
NOT_SERVED = "The broker does not support consumer to filter message by SQL92"


class Desk:
    """A broker that serves SQL92, a client, and a topic T of ten messages with a = 0 to 9 in queue 0."""

    def __init__(self, **options: Any) -> None:
        self.broker = BrokerInMemory(**{"enable_property_filter": True} | options)
        self.peer = self.broker.connect()
        for number in range(10):
            self.send(number)

    def send(self, number: int, topic: str = "T", more: str = "") -> None:
        fields = {
            "a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0",
            "k": "false", "m": "false", "i": f"UNIQ_KEY\x01K{number}\x02a\x01{number}\x02TAGS\x01t{number}\x02{more}",
        }  # fmt: skip
        assert self.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"%d" % number).code == 0

    def beat(
        self, expression: str, version: int = 1, topic: str = "T", kind: str = "SQL92", **more: Any
    ) -> RemotingCommand:
        subscriptions = [build_subscription("T", expression, "SQL92", sub_version=version)]
        data = ConsumerData(group_name="G", subscription_data_set=subscriptions)
        body = encode_body(HeartbeatData(client_id="c", consumer_data_set=[data]))
        peer = more.get("peer") or self.peer
        peer.send(RemotingCommand(RequestCode.HEART_BEAT, body=body))
        (answer,) = [one for one in peer.received() if one.is_response]
        return answer

    def fields(self, offset: int = 0, flags: int = 0, version: int = 1, **more: str) -> dict[str, str]:
        return {
            "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": str(offset), "maxMsgNums": "32",
            "sysFlag": str(flags), "commitOffset": "0", "suspendTimeoutMillis": "15000", "subVersion": str(version),
            **more,
        }  # fmt: skip

    def pull(self, offset: int = 0, flags: int = 0, version: int = 1, **more: str) -> RemotingCommand:
        return self.peer.ask(RequestCode.PULL_MESSAGE, self.fields(offset, flags, version, **more))


def bodies(answer: RemotingCommand) -> list[int]:
    return [int(message.body) for message in iterate_messages(answer.body)]


def test_a_pull_takes_what_its_groups_expression_selects():
    desk = Desk()
    assert desk.beat("a > 6 OR TAGS = 't2'").code == ResponseCode.SUCCESS
    answer = desk.pull()
    assert (answer.code, answer.ext_fields["nextBeginOffset"], bodies(answer)) == (0, "10", [2, 7, 8, 9])


def test_a_pull_that_nothing_matches_goes_on_behind_what_it_looked_at():
    desk = Desk()
    desk.beat("a > 100")
    answer = desk.pull()
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "10")


def test_a_pull_takes_what_its_own_expression_selects():
    answer = Desk().pull(flags=SUBSCRIPTION, subscription="a BETWEEN 3 AND 4", expressionType="SQL92")
    assert bodies(answer) == [3, 4]


def test_a_waiting_pull_is_woken_by_a_message_and_reads_by_the_expression():
    desk = Desk()
    desk.beat("a > 100")
    desk.peer.send(RemotingCommand(RequestCode.PULL_MESSAGE, ext_fields=desk.fields(10, SUSPEND)))
    assert desk.peer.received() == []
    other: Peer = desk.broker.connect()
    mine, desk.peer = desk.peer, other
    desk.send(500)
    (answer,) = mine.received()
    assert (answer.code, bodies(answer)) == (0, [500])


def test_a_waiting_pull_sleeps_on_over_messages_that_do_not_match():
    desk = Desk()
    desk.beat("a > 100")
    mine, desk.peer = desk.peer, desk.broker.connect()
    mine.send(RemotingCommand(RequestCode.PULL_MESSAGE, ext_fields=desk.fields(10, SUSPEND)))
    for number in range(3):
        desk.send(number)
    assert (mine.received(), desk.broker.controller.polling.count(WaitingKind.PULL)) == ([], 1)
    desk.send(500)
    (answer,) = mine.received()
    assert (answer.code, answer.ext_fields["nextBeginOffset"], bodies(answer)) == (0, "14", [500])


def test_a_waiting_pull_that_nothing_matched_goes_on_behind_what_came():
    desk = Desk()
    desk.beat("a > 100")
    mine, desk.peer = desk.peer, desk.broker.connect()
    mine.send(RemotingCommand(RequestCode.PULL_MESSAGE, ext_fields=desk.fields(10, SUSPEND)))
    desk.send(1)
    desk.broker.clock.advance(15)
    desk.broker.controller.polling.answer_expired(desk.broker.now_ms())
    (answer,) = mine.received()
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_NOT_FOUND, "11")


@pytest.mark.parametrize("flags", [0, SUBSCRIPTION])
def test_brokers_that_do_not_filter_say_so(flags: int):
    desk = Desk(enable_property_filter=False)
    desk.beat("a > 1")
    answer = desk.pull(flags=flags, subscription="a > 1", expressionType="SQL92")
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, NOT_SERVED)
    assert check(desk, "a > 1").remark == NOT_SERVED


@pytest.mark.parametrize("expression", ["a = 'read by nobody'", "a > > 'read by nobody'"])
def test_brokers_that_do_not_filter_read_no_expression(expression: str):
    desk = Desk(enable_property_filter=False)
    assert desk.beat(expression).code == 0
    for flags in (0, SUBSCRIPTION):
        assert desk.pull(flags=flags, subscription=expression, expressionType="SQL92").remark == NOT_SERVED
    assert check(desk, expression).remark == NOT_SERVED
    assert not is_known(expression)


def check(desk: Desk, expression: str, kind: str = "SQL92") -> RemotingCommand:
    subscription = build_subscription("T", expression, kind)
    body = CheckClientRequestBody(client_id="c", group="G", subscription_data=subscription)
    return desk.peer.ask(RequestCode.CHECK_CLIENT_CONFIG, body=encode_body(body))


def test_a_bad_expression_is_refused_with_its_place():
    desk = Desk()
    refused = [desk.beat("a > > 1"), check(desk, "a > > 1")]
    assert [answer.code for answer in refused] == [ResponseCode.SUBSCRIPTION_PARSE_FAILED] * 2
    assert [str(answer.remark).splitlines()[-2:] for answer in refused] == [["a > > 1", "    ^"]] * 2
    assert str(refused[0].remark).startswith("topic T: ")
    assert (check(desk, "a > 1").code, check(desk, "x || y", "TAG").code) == (0, 0)
    assert check(desk, "a > 1", "OTHER").code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_a_group_with_a_bad_expression_pulls_nothing():
    desk = Desk()
    desk.beat("a > > 1")
    assert desk.broker.controller.consumers.groups["G"].client_ids() == ["c"]
    answer = desk.pull()
    remark = "The broker's consumer filter data is not exist!Your expression may be wrong!"
    assert (answer.code, answer.remark) == (ResponseCode.FILTER_DATA_NOT_EXIST, remark)


@pytest.mark.parametrize(
    ("kind", "expression"), [("SQL92", "a > > 1"), ("SQL92", ""), ("OTHER", "a > 1"), ("TAG", "||")]
)
def test_a_pull_with_a_bad_expression_of_its_own_is_refused(kind: str, expression: str):
    answer = Desk().pull(flags=SUBSCRIPTION, subscription=expression, expressionType=kind)
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert str(answer.remark).startswith("parse the consumer's subscription failed: ")


def test_a_pull_with_a_newer_subscription_than_the_heartbeats_waits_for_the_next_one():
    desk = Desk()
    desk.beat("a > 1", version=5)
    answer = desk.pull(version=6)
    assert (answer.code, answer.remark) == (25, "the consumer's subscription not latest")
    desk.broker.controller.filters.get("T", "G").client_version = 4  # type: ignore[union-attr]
    answer = desk.pull(version=5)
    assert (answer.code, answer.remark) == (
        ResponseCode.FILTER_DATA_NOT_LATEST,
        "the consumer's consumer filter data not latest",
    )


def test_a_filter_dies_with_its_group_and_lives_again():
    desk = Desk()
    peer = desk.broker.connect()
    desk.beat("a > 1", peer=peer)
    data = desk.broker.controller.filters.get("T", "G")
    assert data is not None and not data.is_dead
    peer.channel.connectionLost()
    assert data.is_dead
    desk.beat("a > 1", version=2)
    assert not data.is_dead


@pytest.mark.parametrize(("supported", "expected"), [(False, [1, 9]), (True, [9])])
def test_retried_messages_are_filtered_where_that_is_asked_for(supported: bool, expected: list[int]):
    desk = Desk(filter_support_retry=supported)
    desk.beat("a > 5")
    for number in (1, 9):
        desk.send(number, "%RETRY%G", "RETRY_TOPIC\x01T\x02")
    more = {"topic": "%RETRY%G", "subscription": "a = a", "expressionType": "SQL92"}
    if not supported:
        more["subscription"] = "a > 0"
    assert bodies(desk.pull(flags=SUBSCRIPTION, **more)) == expected


def test_damaged_records_are_tested_without_properties():
    desk = Desk()
    desk.broker.store._records[0] = desk.broker.store._records[0][:50] + b"\xff" * 50
    answer = desk.pull(flags=SUBSCRIPTION, subscription="a IS NOT NULL", expressionType="SQL92")
    assert len(bodies(answer)) == 9
