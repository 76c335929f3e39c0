"""VIEW_BROKER_STATS_DATA: each statistic that a broker of 5.3.3 fills is counted by what clients do."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_pull import pull
from tests.twisted_mq.broker.processors.test_send import fields, send
from twisted_mq.protocol.bodies import BrokerStatsData, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand


def minute(broker: BrokerInMemory, peer: Peer, name: str, key: str) -> tuple[int, float]:
    """Sum and average a request."""
    broker.clock.advance(10)
    broker.controller.take_sample(broker.clock.seconds())
    answer = peer.ask(RequestCode.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})
    assert answer.code == 0, answer.remark
    shown = decode_body(BrokerStatsData, answer.body).stats_minute
    assert shown is not None
    return shown.sum, shown.avgpt


@pytest.fixture
def busy() -> tuple[BrokerInMemory, Peer]:
    """A message was sent, pulled, given back and given up."""
    broker = BrokerInMemory()
    broker.controller.waiting.start()
    peer = broker.connect()
    heartbeat(peer, "G", "T", producer="P")
    send(peer)
    assert pull(peer).code == 0
    given_back = {"offset": "0", "group": "G", "originTopic": "T"}
    for level in ("1", "-1"):
        assert peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, {**given_back, "delayLevel": level}).code == 0
    return broker, peer


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("TOPIC_PUT_NUMS", "T", 1),
        ("TOPIC_PUT_NUMS", "%DLQ%G", 1),
        ("TOPIC_PUT_LATENCY", "0@T", 0),
        ("QUEUE_PUT_NUMS", "T@0", 1),
        ("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@0", 1),
        ("GROUP_GET_NUMS", "T@G", 1),
        ("GROUP_GET_LATENCY", "0@T@G", 0),
        ("QUEUE_GET_NUMS", "T@0@G", 1),
        ("QUEUE_GET_NUMS", "SCHEDULE_TOPIC_XXXX@0@SCHEDULE_CONSUMER", 1),
        ("SNDBCK_PUT_NUMS", "T@G", 2),
        ("SNDBCK2DLQ_TIMES", "null@T@G@SEND_BACK_TO_DLQ", 1),
        ("BROKER_PUT_NUMS", "CapCluster", 4),
        ("BROKER_GET_NUMS", "CapCluster", 1),
        ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "CapCluster", 3),
        ("BROKER_ACK_NUMS", "CapCluster", 0),
        ("CONSUMER_REGISTER_TIME", "CapCluster", 0),
        ("PRODUCER_REGISTER_TIME", "CapCluster", 0),
    ],
)
def test_each_name_is_filled(busy: tuple[BrokerInMemory, Peer], name: str, key: str, expected: int) -> None:
    assert minute(*busy, name, key)[0] == expected


def test_latency_of_a_send_lasts_until_it_is_durable() -> None:
    broker = BrokerInMemory(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    peer, admin = broker.connect(), broker.connect()
    peer.send(RemotingCommand(310, body=b"x", ext_fields=fields()))
    broker.clock.advance(0.25)
    broker.store.flush()
    assert [one.code for one in peer.received()] == [0]
    assert minute(broker, admin, "TOPIC_PUT_LATENCY", "0@T") == (250, 250.0)


def test_channels_come_and_go() -> None:
    broker = BrokerInMemory()
    activity = broker.controller.statistics.activity
    broker.traffic.count = lambda event: activity[event].add(1, 0)
    admin, damaged = broker.connect(), broker.connect()
    damaged.channel.dataReceived(b"\xff" * 8)
    damaged.channel.connectionLost()
    counts = [minute(broker, admin, "CHANNEL_ACTIVITY", event)[0] for event in ("CONNECT", "EXCEPTION", "CLOSE")]
    assert counts == [2, 1, 1]
