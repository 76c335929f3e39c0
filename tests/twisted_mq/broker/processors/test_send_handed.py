"""Messages that the broker's own proxy hands over are stored as sends over the wire are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.access import ROOT, Signer, asking_broker
from tests.support.broker import BrokerInMemory
from tests.twisted_mq.broker.processors.test_send import fields
from tests.twisted_mq.broker.processors.test_send_columns import outcome, sends
from twisted_mq.broker.processors.send_handed import HandedSends
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode


@pytest.mark.parametrize("filter_type", ["SINGLE_TAG", "MULTI_TAG"])
@pytest.mark.parametrize("tags", ["", "A"])
@pytest.mark.parametrize("count", [1, 3])
def test_log_queues_and_counts_are_those_of_sends(count: int, tags: str, filter_type: str) -> None:
    sent, handed = BrokerInMemory(), BrokerInMemory()
    more = f"TAGS\x01{tags}\x02" if tags else ""
    reads = sends(1 + count, properties=more, queue_id=1)
    for broker in (sent, handed):
        broker.controller.topics.update([TopicConfig(topic_name="T", topic_filter_type=filter_type)])
        outcome(broker, reads[:1])
    _, *expected = outcome(sent, reads[1:])
    assert handed.served.columns is not None
    offsets = HandedSends(handed.served.columns).put(
        handed.connect().channel,
        "T",
        [1] * count,
        [b"hello"] * count,
        [f"UNIQ_KEY\x01C0A8{number:04X}\x02{more}".encode() for number in range(1, 1 + count)],
        [tags] * count,
        [1_795_217_217_000 + number // 5 % 3 for number in range(1, 1 + count)],
    )
    handed.controller.dispatch()
    _, *found = outcome(handed, [])
    assert [*offsets] == [*range(1, 1 + count)]
    assert found == expected


def test_nothing_is_stored_while_requests_are_checked(tmp_path: Path) -> None:
    for broker, stored in ((BrokerInMemory(), [1]), (asking_broker(str(tmp_path)), [])):
        assert Signer(broker, ROOT).ask(RequestCode.SEND_MESSAGE_V2, fields(), b"hello") == (0, None)
        assert broker.served.columns is not None
        put = HandedSends(broker.served.columns).put
        assert [*put(broker.connect().channel, "T", [0], [b"hello"], [b"UNIQ_KEY\x01K\x02"], [""], [1])] == stored


def test_nothing_is_stored_of_a_topic_that_is_not_there() -> None:
    broker = BrokerInMemory()
    assert broker.served.columns is not None
    put = HandedSends(broker.served.columns).put
    assert [*put(broker.connect().channel, "T", [0], [b"hello"], [b"UNIQ_KEY\x01K\x02"], [""], [1])] == []
    assert broker.store.max_physical_offset() == 0
