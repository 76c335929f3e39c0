"""Recalls by handle, as a producer's frames see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.recall_handle import RecallHandle
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand

BROKER = "broker-cap"


def running(tmp_path: Path, **options: object) -> tuple[BrokerInMemory, Peer]:
    broker = BrokerInMemory(store_path_root_dir=str(tmp_path), **{"recall_message_enable": True, **options})
    broker.controller.waiting.start()
    return broker, broker.connect()


def send(peer: Peer, key: str, properties: str) -> RemotingCommand:
    fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1795217217000", "h": "0",
              "i": f"UNIQ_KEY\x01{key}\x02{properties}"}  # fmt: skip
    return peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x")


def recall(peer: Peer, handle: str, **more: str) -> RemotingCommand:
    return peer.ask(RequestCode.RECALL_MESSAGE, {"topic": "T", "producerGroup": "P", "recallHandle": handle, **more})


def handle(**changes: str) -> str:
    values = {"topic": "T", "broker_name": BROKER, "timestamp": "1795217222001", "unique_key": "K"}
    return RecallHandle(**{**values, **changes}).encode()


def test_recalled_message_is_not_delivered(tmp_path: Path) -> None:
    broker, peer = running(tmp_path)
    sent = send(peer, "K", "TIMER_DELAY_SEC\x015\x02")
    send(peer, "L", "TIMER_DELAY_SEC\x015\x02")
    assert (sent.code, sent.ext_fields["queueId"], sent.ext_fields["queueOffset"]) == (0, "1", "0")
    text = sent.ext_fields["recallHandle"]
    assert RecallHandle.decode(text) == RecallHandle("T", BROKER, str(broker.now_ms() // 1000 * 1000 + 4001), "K")
    answer = recall(peer, text)
    assert (answer.code, answer.ext_fields) == (0, {"MSG_REGION": "DefaultRegion", "msgId": "K"})
    broker.clock.advance(10)
    found = broker.store.get_message("T", 1, 0, 32, 9999, None).records
    assert [decode_message(one).unique_key for one in found] == ["L"]
    broker.controller.waiting.save()


def test_recall_lies_in_the_timers_topic_as_apache_stores_it(tmp_path: Path) -> None:
    broker, peer = running(tmp_path)
    send(peer, "K", "TIMER_DELAY_SEC\x015\x02")
    recall(peer, handle())
    record = broker.store.get_message(TIMER_TOPIC, 0, 1, 1, 9999, None).records[0]
    message = decode_message(record)
    assert (message.body, message.born_timestamp, message.born_host) == (b"0", broker.now_ms(), "127.0.0.1:52174")
    assert message.properties == {
        "TAGS": "_RECALL_TAG_", "TIMER_DEL_UNIQKEY": "T+K", "UNIQ_KEY": "K", "TIMER_DELIVER_MS": "1795217222001",
        "BORN_TIMESTAMP": str(broker.now_ms()), "PGROUP": "P", "TIMER_OUT_MS": "1795217222000", "REAL_TOPIC": "T",
        "REAL_QID": "0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "more", "code", "remark"),
    [
        ("no handle", {}, 604, "recall handle is invalid"),
        (handle(topic="U"), {}, 604, "recall failed, topic not match"),
        (handle(broker_name="other"), {}, 604, "recall failed, broker service not available"),
        (handle(timestamp="1795217217000"), {}, 604, "recall failed, timestamp invalid"),
        (handle(timestamp="1795476417000"), {}, 604, "recall failed, timestamp invalid"),
        (handle(timestamp="soon"), {}, 604, "recall failed, timestamp invalid"),
        (handle(), {"topic": "None"}, 17, "recall failed, the topic[None] not exist"),
    ],
)
def test_refusals_have_apaches_words_and_store_nothing(
    tmp_path: Path, text: str, more: dict[str, str], code: int, remark: str
) -> None:
    broker, peer = running(tmp_path)
    send(peer, "K", "")
    end = broker.store.max_physical_offset()
    answer = recall(peer, text, **more)
    assert (answer.code, answer.remark, answer.ext_fields) == (code, remark, {"MSG_REGION": "DefaultRegion"})
    assert broker.store.max_physical_offset() == end


@pytest.mark.parametrize(
    ("options", "code", "remark"),
    [
        ({"recall_message_enable": False}, 16, "recall failed, operation is forbidden"),
        ({"broker_role": "SLAVE"}, 11, "recall failed, broker service not available"),
        (
            {"broker_permission": 4, "allow_recall_when_broker_not_writeable": False},
            14,
            "recall failed, broker service not available",
        ),
        (
            {"start_accept_send_request_time_stamp": 2_000_000_000_000},
            14,
            "recall failed, broker service not available",
        ),
    ],
)
def test_brokers_that_serve_no_recalls_say_so(
    tmp_path: Path, options: dict[str, object], code: int, remark: str
) -> None:
    _, peer = running(tmp_path, **options)
    answer = recall(peer, handle())
    assert (answer.code, answer.remark) == (code, remark)


def test_recall_at_a_crowded_second_fails_and_sends_before_the_first_accepted_time_too(tmp_path: Path) -> None:
    broker, peer = running(tmp_path, timer_congest_num_each_slot=1)
    for number in range(3):
        send(peer, f"K{number}", "TIMER_DELIVER_MS\x011795217222001\x02")
        broker.clock.advance(0.2)
    refused = send(peer, "K9", "TIMER_DELIVER_MS\x011795217222001\x02")
    assert (refused.code, (refused.remark or "")[:35]) == (1, "timer message is under flow control")
    answer = recall(peer, handle())
    assert (answer.code, answer.remark) == (1, "recall failed, execute error")
    broker.options.start_accept_send_request_time_stamp = 2_000_000_000_000
    broker.controller.topics.update([])
    early = send(peer, "K", "")
    assert (early.code, (early.remark or "")[:35]) == (1, "broker unable to service, until 203")


def test_message_timed_too_far_ahead_is_refused_with_apaches_words(tmp_path: Path) -> None:
    _, peer = running(tmp_path)
    answer = send(peer, "K", "TIMER_DELAY_SEC\x01259201\x02")
    assert (answer.code, (answer.remark or "")[:84]) == (
        13, "timer message illegal, the delay time should not be bigger than the max delay 259200",
    )  # fmt: skip
