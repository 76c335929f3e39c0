"""Bad input: sends, pulls and pops that would break an order, and a broker that can't keep one."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode, ResponseCode

FIELDS = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0",
          "k": "false", "m": "false"}  # fmt: skip


def broker(order: str | None = "queues", **options: object) -> Peer:
    made = BrokerInMemory(**options)
    attributes = {} if order is None else {"order": order}
    made.controller.topics.update([TopicConfig(topic_name="T", attributes=attributes)])
    return made.connect()


def properties(**named: str) -> dict[str, str]:
    return {"i": "".join(f"{name}\x01{value}\x02" for name, value in named.items())}


@pytest.mark.parametrize("order", ["queues", "together"])
def test_ordered_topic_without_a_coordinator_says_what_to_set(order: str) -> None:
    peer = broker(order)
    remark = "topic T is ordered, and this broker can't keep order: set its key orderCoordinator"
    sent = peer.ask(RequestCode.SEND_MESSAGE_V2, FIELDS, b"x")
    assert (sent.code, sent.remark) == (ResponseCode.NO_PERMISSION, remark)
    assert sent.ext_fields["MSG_REGION"] == "DefaultRegion"
    pull = {"consumerGroup": "C", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4",
            "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0", "subscription": "*"}  # fmt: skip
    pulled = peer.ask(RequestCode.PULL_MESSAGE, pull)
    assert (pulled.code, pulled.remark) == (ResponseCode.NO_PERMISSION, remark)
    offset = {"consumerGroup": "C", "topic": "T", "queueId": "0"}
    assert peer.ask(RequestCode.QUERY_CONSUMER_OFFSET, offset).remark == remark


def test_coordinator_that_was_not_reached_yet_is_another_reason() -> None:
    sent = broker(order_coordinator="memory").ask(RequestCode.SEND_MESSAGE_V2, FIELDS, b"x")
    assert sent.remark == "topic T is ordered, and this broker can't keep order: it has not reached its coordinator yet"


def test_ordered_send_to_a_topic_that_is_not_ordered() -> None:
    sent = broker(None).ask(RequestCode.SEND_MESSAGE_V2, FIELDS | properties(ORDERED="1:0:3:1:1"), b"x")
    assert sent.code == ResponseCode.INVALID_PARAMETER
    assert sent.remark == "the topic is not ordered, but ORDERED is 1:0:3:1:1: send with a Producer"


@pytest.mark.parametrize(
    ("name", "value"), [("DELAY", "3"), ("TIMER_DELAY_SEC", "5"), ("TIMER_DELIVER_MS", "9"), ("TRAN_MSG", "true")]
)
def test_message_that_waits_is_refused_in_an_ordered_topic(name: str, value: str) -> None:
    """The coordinator is not asked: the refusal does not need it."""
    from twisted_mq.broker.processors.send_postponed import check_order
    from twisted_mq.protocol.errors import BrokerError

    with pytest.raises(BrokerError, match=f"would break its order: {name} is {value}") as caught:
        check_order({"UNIQ_KEY": "k", name: value}, "queues")
    assert caught.value.response_code == ResponseCode.NO_PERMISSION


def test_pop_of_an_ordered_topic_is_refused() -> None:
    fields = {"consumerGroup": "C", "topic": "T", "queueId": "0", "maxMsgNums": "1", "invisibleTime": "60000", "pollTime": "0",
              "bornTime": "1795217217000", "initMode": "0"}  # fmt: skip
    answer = broker().ask(RequestCode.POP_MESSAGE, fields)
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "is ordered: pull it with an OrderedConsumer" in (answer.remark or "")


@pytest.mark.parametrize("attributes", ["+order=queues", "+order=together"])
def test_topic_is_made_ordered_at_its_creation_only(attributes: str) -> None:
    made = BrokerInMemory()
    peer = made.connect()
    fields = {"topic": "New", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "order": "false"}  # fmt: skip
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields | {"attributes": attributes}).code == 0
    config = made.controller.topics.get("New")
    assert config is not None
    assert config.order_mode == attributes.partition("=")[2]
    changed = peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields | {"attributes": "-order"})
    assert changed.remark == "attempt to update an unchangeable attribute. key: order"


def test_another_value_is_refused() -> None:
    fields = {"topic": "New", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": "+order=strict"}  # fmt: skip
    answer = BrokerInMemory().connect().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    assert answer.remark == "value is not in set: [queues, together]"
