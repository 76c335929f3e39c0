"""Metrics asked from consumers: those of the last turn, from present consumers only, and none if they are not shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet import defer
from twisted.logger import LogEvent, capturedLogs, formatEvent

from tests.support.broker import BrokerInMemory, Peer
from tests.support.heartbeat import heartbeat
from twisted_mq.broker.clients import consumer_figures
from twisted_mq.broker.metrics.consumers import FAMILIES
from twisted_mq.broker.metrics.scrape import Scrape
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, TopicConfig, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.subscription import build_subscription
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.socket_channel import SocketChannel
from twisted_mq.testing import VirtualCluster

PEER = "127.0.0.1:52174"
BODY = (
    b'{"mqPopTable":{},"mqTable":{{"brokerName":"broker-cap","queueId":0,"topic":"T"}:{"cachedMsgCount":0,'
    b'"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":7,"droped":false,'
    b'"lastConsumeTimestamp":1795217217000,"lastLockTimestamp":1795217217000,"lastPullTimestamp":1795217217000,'
    b'"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}},'
    b'"properties":{"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"},"statusTable":{"T":{"consumeFailedMsgs":3,'
    b'"consumeFailedTPS":0.05,"consumeOKTPS":12.5,"consumeRT":4.25,"pullRT":31.5,"pullTPS":12.55},'
    b'"elsewhere":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,"pullRT":0.0,'
    b'"pullTPS":0.0}},"subscriptionSet":[],"userConsumerInfo":{}}'
)
"""As Apache's push consumer writes it, whose queues are objects as keys; this broker has no topic `elsewhere`."""
TOLD = {
    "rocketmq_client_consume_fail_msg_count": 3,
    "rocketmq_client_consume_fail_msg_tps": 0.05,
    "rocketmq_client_consume_ok_msg_tps": 12.5,
    "rocketmq_client_consume_rt": 4.25,
    "rocketmq_client_consumer_pull_rt": 31.5,
    "rocketmq_client_consumer_pull_tps": 12.55,
}


def broker_with_topic() -> BrokerInMemory:
    broker = BrokerInMemory()
    broker.controller.topics.update([TopicConfig("T")])
    return broker


def consumer(broker: BrokerInMemory, client_id: str) -> Peer:
    peer = broker.connect()
    heartbeat(peer, "C", "T", client_id=client_id)
    return peer


def turn(broker: BrokerInMemory) -> defer.Deferred[None]:
    return defer.ensureDeferred(broker.controller.consumer_figures.ask())


def asked(*peers: Peer) -> list[RemotingCommand]:
    """The questions that came to them, beside what else the broker tells them."""
    came = (command for peer in peers for command in peer.received())
    return [command for command in came if command.code == RequestCode.GET_CONSUMER_RUNNING_INFO]


def answer(peer: Peer, body: bytes = BODY, code: int = 0) -> None:
    (question,) = asked(peer)
    peer.send(question.answer(code, body=body))


def shown(broker: BrokerInMemory) -> dict[str, dict[tuple[str, ...], Any]]:
    server: Any = None
    scrape = Scrape(broker.controller, server)
    return {family.name: dict(family.rows(scrape)) for family in FAMILIES}


def of_clients(*client_ids: str) -> dict[str, dict[tuple[str, ...], Any]]:
    return {name: {(PEER, one, "C", "T"): value for one in client_ids} for name, value in TOLD.items()}


def lines(events: list[LogEvent]) -> list[str | None]:
    return [formatEvent(event) for event in events if event["log_namespace"] == consumer_figures.__name__]


def test_what_consumers_tell_is_shown_when_each_has_answered() -> None:
    broker = broker_with_topic()
    one, other = consumer(broker, "one"), consumer(broker, "other")
    over = turn(broker)
    (question,) = asked(one)
    assert question.ext_fields == {"consumerGroup": "C", "clientId": "one", "jstackEnable": "false"}
    one.send(question.answer(body=BODY))
    assert (over.called, shown(broker)) == (False, of_clients())
    answer(other)
    assert (over.called, shown(broker)) == (True, of_clients("one", "other"))


def test_what_apaches_push_consumer_told_is_read() -> None:
    """Recorded of 5.3.3's, which pulled four messages a second and refused none."""
    broker = BrokerInMemory()
    broker.controller.topics.update([TopicConfig("Orders")])
    peer = consumer(broker, "java")
    turn(broker)
    answer(peer, Path(__file__).with_name("java_running_info.txt").read_bytes())
    expected = dict(zip(TOLD, (0, 0.0, 4.0, 0.625, 856.1388888888889, 4.0), strict=True))
    assert shown(broker) == {name: {(PEER, "java", "C", "Orders"): value} for name, value in expected.items()}


NONSENSE = [
    (0, b"", "no JSON"),
    (0, b"x" * 262_145, "262145 bytes"),
    (3, b"", "3"),
    (0, b'{"statusTable":[]}', "status"),
]


@pytest.mark.parametrize(("code", "body", "said"), NONSENSE, ids=["nothing", "too much", "unknown code", "other shape"])
def test_who_answers_nonsense_has_no_figures_any_more_and_is_named_once(code: int, body: bytes, said: str) -> None:
    broker = broker_with_topic()
    one, other = consumer(broker, "one"), consumer(broker, "other")
    turn(broker)
    answer(one), answer(other)
    with capturedLogs() as events:
        for _ in range(2):
            over = turn(broker)
            answer(one, body, code), answer(other)
            assert (over.called, shown(broker)) == (True, of_clients("other"))
    (line,) = lines(events)
    start = f"consumer reports no metrics: group=C client=one peer={PEER} "
    assert line is not None and line.startswith(start) and said in line.removeprefix(start)
    turn(broker)
    answer(one), answer(other)
    assert shown(broker) == of_clients("one", "other")


def test_who_does_not_answer_has_no_figures_after_two_seconds() -> None:
    broker = broker_with_topic()
    one, other = consumer(broker, "one"), consumer(broker, "other")
    turn(broker)
    answer(one), answer(other)
    with capturedLogs() as events:
        over = turn(broker)
        answer(other)
        assert (over.called, shown(broker)) == (False, of_clients("one", "other"))
        broker.clock.advance(2)
    assert (over.called, shown(broker)) == (True, of_clients("other"))
    reason = f"no answer from {PEER} within 2 s"
    assert lines(events) == [f"consumer reports no metrics: group=C client=one peer={PEER} {reason}"]


def test_who_leaves_has_no_figures_at_once_and_is_not_named() -> None:
    broker = broker_with_topic()
    one, other = consumer(broker, "one"), consumer(broker, "other")
    turn(broker)
    answer(one), answer(other)
    with capturedLogs() as events:
        over = turn(broker)
        one.channel.connectionLost()
        assert shown(broker) == of_clients("other")
        answer(other)
    assert (over.called, shown(broker), lines(events)) == (True, of_clients("other"), [])


def test_a_connection_that_is_another_clients_now_shows_nothing_of_the_first() -> None:
    broker = broker_with_topic()
    peer = consumer(broker, "one")
    turn(broker)
    answer(peer)
    heartbeat(peer, "C", "T", client_id="other")
    assert shown(broker) == of_clients()


def test_few_are_asked_at_once_and_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_figures, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(consumer_figures, "MOST_CONSUMERS", 3)
    monkeypatch.setattr(consumer_figures, "MOST_ROWS", 2)
    broker = broker_with_topic()
    peers = [consumer(broker, client_id) for client_id in "abcd"]
    with capturedLogs() as events:
        for _ in range(2):
            over = turn(broker)
            first, second = asked(*peers)
            peers[0].send(first.answer(body=BODY))
            (third,) = asked(*peers)
            peers[1].send(second.answer(body=BODY))
            peers[2].send(third.answer(body=BODY))
            assert (over.called, asked(*peers), shown(broker)) == (True, [], of_clients("a", "b"))
    assert lines(events) == ["metrics only of the first 3 consumers and 2 of their topics"]


@pytest.mark.parametrize(
    ("shown_by", "times"),
    [(MetricsExporterType.DISABLE, 0), (MetricsExporterType.PROM, 4), (MetricsExporterType.OTLP_GRPC, 4)],
)
def test_nobody_is_asked_where_no_figures_are_shown(shown_by: MetricsExporterType, times: int) -> None:
    options = {
        "metrics_exporter_type": shown_by,
        "metrics_prom_exporter_port": 0,
        "metrics_grpc_exporter_target": "127.0.0.1:1",
        "metric_grpc_exporter_interval_in_mills": 3_600_000,
    }
    questions: list[dict[str, str]] = []

    def told(channel: SocketChannel, request: RemotingCommand) -> RemotingCommand:
        questions.append(request.ext_fields)
        return request.answer(body=BODY)

    with VirtualCluster(broker_options=options) as cluster:
        client = RemotingClient(cluster.reactor)
        client.processors[RequestCode.GET_CONSUMER_RUNNING_INFO] = told
        data = ConsumerData(group_name="C", subscription_data_set=[build_subscription("T", "*")])
        body = encode_body(HeartbeatData(client_id="one", consumer_data_set=[data]))
        request = RemotingCommand.request(RequestCode.HEART_BEAT, {}, body)
        cluster.run(client.invoke(cluster._cluster.broker_address, request))
        cluster.advance(60)
        cluster.run(client.close())
    assert len(questions) == times
