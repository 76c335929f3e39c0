"""Heartbeats of consumers and producers."""

from __future__ import annotations

from tests.support.broker import Peer
from twisted_mq.protocol.bodies import ConsumerData, HeartbeatData, ProducerData, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.subscription import build_subscription
from twisted_mq.protocol.wire.command import RemotingCommand


def heartbeat(
    peer: Peer,
    group: str,
    *topics: str,
    client_id: str = "client",
    language: str = "JAVA",
    producer: str = "",
    message_model: str = "CLUSTERING",
    consume_type: str = "CONSUME_PASSIVELY",
) -> None:
    """Register a peer as a consumer of these topics, and as a producer where a group is given; drops the answer."""
    consumer = ConsumerData(
        group_name=group,
        consume_type=consume_type,
        message_model=message_model,
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=[build_subscription(topic, "*") for topic in topics],
    )
    body = HeartbeatData(
        client_id=client_id,
        consumer_data_set=[consumer] if group else [],
        producer_data_set=[ProducerData(group_name=producer)] if producer else [],
    )
    peer.send(RemotingCommand(RequestCode.HEART_BEAT, language=language, version=479, body=encode_body(body)))
    answer = next(one for one in peer.received() if one.is_response)
    assert answer.code == 0
