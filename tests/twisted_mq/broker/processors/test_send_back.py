"""Messages given back by consumers: retries by delay level, dead letters, and what is refused."""

from __future__ import annotations

import attrs
import pytest

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionGroupConfig
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.requests.registry import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

RETRY, DEAD = "%RETRY%G", "%DLQ%G"


def running(**options: object) -> tuple[BrokerInMemory, Peer]:
    broker = BrokerInMemory(**options)
    broker.controller.waiting.start()
    return broker, broker.connect()


def send(
    peer: Peer, topic: str = "T", properties: str = "UNIQ_KEY\x01K\x02TAGS\x01A\x02", **more: str
) -> RemotingCommand:
    fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "7",
              "i": properties, "j": "0", **more}  # fmt: skip
    return peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"body", version=479)


def back(peer: Peer, offset: int = 0, level: int = 0, version: int = 479, **more: str) -> RemotingCommand:
    fields = {"offset": str(offset), "group": "G", "delayLevel": str(level), "originTopic": "T", **more}
    return peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields, version=version)


def stored(broker: BrokerInMemory, topic: str, queue_id: int = 0) -> list[MessageExt]:
    return [decode_message(one) for one in broker.store.get_message(topic, queue_id, 0, 32, 1 << 20, None).records]


def test_message_comes_again_in_the_retry_topic_after_its_delay() -> None:
    """Properties as printed in the scenario consumer_retry_dlq."""
    broker, peer = running()
    send(peer)
    answer = back(peer, level=1, maxReconsumeTimes="2")
    assert (answer.code, answer.remark, answer.ext_fields) == (0, None, {})
    assert stored(broker, RETRY) == []
    broker.clock.advance(1)
    (again,) = stored(broker, RETRY)
    assert (again.body, again.flag, again.born_host, again.reconsume_times) == (b"body", 7, "127.0.0.1:52174", 1)
    assert again.properties == {
        "UNIQ_KEY": "K", "TAGS": "A", "CLUSTER": "CapCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
        "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "7F000002000051AF0000000000000000", "WAIT": "false", "DELAY": "1",
        "REAL_TOPIC": RETRY, "REAL_QID": "0",
    }  # fmt: skip
    config = broker.controller.topics.get(RETRY)
    assert (config.read_queue_nums, config.write_queue_nums, config.perm, config.topic_sys_flag) == (1, 1, 6, 0)


def test_message_given_back_is_counted_with_the_size_of_its_new_record() -> None:
    broker, peer = running()
    send(peer)
    begin = broker.store.max_physical_offset()
    back(peer, level=1)
    size = broker.store.max_physical_offset() - begin
    statistics = broker.controller.statistics
    for counter in (statistics.sent_back["T@G"], statistics.puts["SCHEDULE_TOPIC_XXXX"]):
        assert (counter.messages, counter.bytes) == (1, size)


def test_second_try_keeps_the_first_topic_and_id_and_waits_a_level_longer() -> None:
    """Level 0 leaves the delay to the broker: 10 s the first time, 30 s the second."""
    broker, peer = running()
    send(peer)
    back(peer)
    broker.clock.advance(10)
    (first,) = stored(broker, RETRY)
    back(peer, offset=first.physical_offset)
    broker.clock.advance(29.9)
    assert len(stored(broker, RETRY)) == 1
    broker.clock.advance(0.2)
    second = stored(broker, RETRY)[1]
    assert (first.properties["DELAY"], second.properties["DELAY"], second.reconsume_times) == ("3", "4", 2)
    assert second.properties["RETRY_TOPIC"] == "T"
    assert second.properties["ORIGIN_MESSAGE_ID"] == "7F000002000051AF0000000000000000"


def test_tries_beyond_the_clients_most_end_in_the_dead_letters() -> None:
    broker, peer = running()
    send(peer)
    back(peer, level=1, maxReconsumeTimes="1")
    broker.clock.advance(1)
    (again,) = stored(broker, RETRY)
    counted = broker.controller.statistics.dead_letters
    assert not counted
    assert back(peer, offset=again.physical_offset, level=1, maxReconsumeTimes="1").code == 0
    assert {key: counter.times for key, counter in counted.items()} == {"null@T@G@SEND_BACK_TO_DLQ": 1}
    (dead,) = stored(broker, DEAD)
    assert (dead.reconsume_times, dead.properties["DELAY"], dead.properties["RETRY_TOPIC"]) == (2, "0", "T")
    assert dead.properties["ORIGIN_MESSAGE_ID"] == "7F000002000051AF0000000000000000"
    assert broker.controller.topics.get(DEAD).perm == 6


@pytest.mark.parametrize(
    ("most", "version", "topic"),
    [({}, 479, DEAD), ({"maxReconsumeTimes": "5"}, 479, RETRY), ({"maxReconsumeTimes": "5"}, 120, DEAD)],
    ids=["the group's", "the client's", "an old client's does not count"],
)
def test_most_tries_are_the_clients_or_the_groups(most: dict[str, str], version: int, topic: str) -> None:
    broker, peer = running()
    broker.controller.groups.update(SubscriptionGroupConfig(group_name="G", retry_max_times=0))
    send(peer)
    back(peer, level=1, version=version, **most)
    broker.clock.advance(1)
    assert len(stored(broker, topic)) == 1


def test_level_below_zero_is_a_dead_letter_at_once() -> None:
    broker, peer = running()
    send(peer)
    back(peer, level=-1)
    (dead,) = stored(broker, DEAD)
    assert (dead.reconsume_times, dead.body) == (1, b"body")


def test_retries_go_round_the_groups_retry_queues() -> None:
    broker, peer = running()
    broker.controller.groups.update(SubscriptionGroupConfig(group_name="G", retry_queue_nums=3))
    send(peer)
    for _ in range(40):
        back(peer, level=1)
    broker.clock.advance(1)
    counts = [len(stored(broker, RETRY, queue_id)) for queue_id in range(3)]
    assert (sum(counts), min(counts) > 0) == (40, True)


def test_group_without_retry_queues_gives_messages_up() -> None:
    broker, peer = running()
    broker.controller.groups.update(SubscriptionGroupConfig(group_name="G", retry_queue_nums=0))
    send(peer)
    end = broker.store.max_physical_offset()
    assert (back(peer).code, broker.store.max_physical_offset()) == (0, end)


def test_unit_mode_marks_the_retry_topic() -> None:
    broker, peer = running()
    send(peer)
    back(peer, unitMode="true")
    assert broker.controller.topics.get(RETRY).topic_sys_flag == 2


def test_compressed_body_stays_as_it_is() -> None:
    broker, peer = running()
    send(peer, f="1")
    back(peer, level=-1)
    record = broker.store.get_message(DEAD, 0, 0, 1, 999, None).records[0]
    dead = decode_message(record, decompress=False)
    assert (dead.sys_flag, dead.body) == (1, b"body")


def test_refusals_have_apaches_codes_and_change_nothing() -> None:
    broker, peer = running(auto_create_subscription_group=False)
    send(peer)
    end = broker.store.max_physical_offset()
    unknown = back(peer)
    assert (unknown.code, (unknown.remark or "").splitlines()[0]) == (26, "subscription group not exist, G ")
    broker.controller.groups.update(SubscriptionGroupConfig(group_name="G"))
    missing = back(peer, offset=99_999_999)
    assert (missing.code, missing.remark) == (1, "look message by offset failed, 99999999")
    inside = back(peer, offset=5)
    assert (inside.code, inside.remark) == (1, "look message by offset failed, 5")
    broker.options.broker_permission = 4
    forbidden = back(peer)
    assert (forbidden.code, forbidden.remark) == (16, "the broker[127.0.0.2] sending message is forbidden")
    broker.options.broker_permission = 6
    field = peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, {"offset": "0", "group": "G"})
    assert (field.code, "delayLevel: required, but missing" in (field.remark or "")) == (1, True)
    assert broker.store.max_physical_offset() == end


def test_retry_topic_without_write_permission_takes_nothing() -> None:
    broker, peer = running()
    send(peer)
    back(peer, level=-1)
    topics = broker.controller.topics
    topics.update([attrs.evolve(topics.get(RETRY), perm=4)])
    answer = back(peer)
    assert (answer.code, answer.remark) == (16, "the topic[%RETRY%G] sending message is forbidden")


# Sends to the retry topic: how a client gives back what it cannot give back by code 36


def test_send_to_the_retry_topic_waits_like_a_message_given_back() -> None:
    broker, peer = running()
    answer = send(peer, RETRY, "UNIQ_KEY\x01K\x02DELAY\x011\x02RETRY_TOPIC\x01T\x02", j="1", l="16")
    assert (answer.code, answer.ext_fields["queueId"]) == (0, "0")
    broker.clock.advance(1)
    (again,) = stored(broker, RETRY)
    assert (again.reconsume_times, again.properties["REAL_TOPIC"]) == (1, RETRY)


@pytest.mark.parametrize(("tries", "topic"), [("2", "SCHEDULE_TOPIC_XXXX"), ("3", DEAD)])
def test_send_tried_more_often_than_allowed_is_a_dead_letter(tries: str, topic: str) -> None:
    broker, peer = running()
    answer = send(peer, RETRY, "UNIQ_KEY\x01K\x02DELAY\x013\x02", j=tries, l="2")
    (message,) = stored(broker, topic, 2 if topic != DEAD else 0)
    assert (answer.code, answer.ext_fields["queueId"]) == (0, "0")
    assert message.properties["DELAY"] == ("-1" if topic == DEAD else "3")
    assert message.properties["UNIQ_KEY"] == "K"


def test_what_a_group_gives_back_that_consumes_in_order_is_a_dead_letter_at_once() -> None:
    broker, peer = running()
    broker.controller.locks.try_lock("G", [MessageQueue("T", "broker-cap", 0)], "client", broker.now_ms())
    send(peer, RETRY, "UNIQ_KEY\x01K\x02DELAY\x013", j="1", l="16")
    assert [one.reconsume_times for one in stored(broker, DEAD)] == [1]


def test_send_to_the_retry_topic_of_an_unknown_group_is_refused() -> None:
    broker, peer = running(auto_create_subscription_group=False)
    answer = send(peer, RETRY, j="1")
    assert (answer.code, stored(broker, RETRY)) == (26, [])
