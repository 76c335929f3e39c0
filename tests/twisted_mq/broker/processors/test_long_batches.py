"""A batch of very many messages is stored in several turns; it is checked as a whole first."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory
from tests.twisted_mq.broker.processors.test_send import fields
from twisted_mq.broker.processors.send_batch import MOST_TOGETHER
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.batch_entry import cut_batch, encode_entry
from twisted_mq.protocol.layouts.message_id import decode_offset_message_id
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.interfaces import PutResult, PutStatus

COUNT = 2 * MOST_TOGETHER + 5


def batch(count: int) -> bytes:
    return b"".join(encode_entry(number & 0x7FFF, b"b", b"") for number in range(count))


def send(broker: BrokerInMemory, body: bytes) -> tuple[list[RemotingCommand], list[int]]:
    """The answers, and how many messages were there after each turn."""
    peer = broker.connect()
    asked = fields(batch="true")
    peer.send(RemotingCommand(RequestCode.SEND_BATCH_MESSAGE, body=body, language="JAVA", ext_fields=asked))
    turns = [broker.store.max_offset_in_queue("T", 0)]
    for _ in range(6):
        broker.clock.advance(0)
        turns.append(broker.store.max_offset_in_queue("T", 0))
    return peer.received(), turns


def test_it_is_stored_in_stretches_and_answered_once_with_all_ids() -> None:
    broker = BrokerInMemory()
    (answer,), turns = send(broker, batch(COUNT))
    assert (answer.code, turns[0], turns[-1]) == (0, 0, COUNT)
    ids = answer.ext_fields["msgId"].split(",")
    assert (answer.ext_fields["queueOffset"], len(ids), len(set(ids))) == ("0", COUNT, COUNT)
    offset = decode_offset_message_id(ids[-1])[2]
    assert broker.store.look_message(offset) is not None
    assert broker.controller.statistics.put_messages == COUNT


def test_it_is_answered_once_its_last_message_is_on_disk() -> None:
    broker = BrokerInMemory(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    peer = broker.connect()
    body, asked = batch(COUNT), fields(batch="true")
    peer.send(RemotingCommand(RequestCode.SEND_BATCH_MESSAGE, body=body, language="JAVA", ext_fields=asked))
    broker.clock.pump([0] * 6)
    assert (peer.received(), broker.store.max_offset_in_queue("T", 0)) == ([], 0)
    broker.store.flush()
    broker.clock.advance(0)
    (answer,) = peer.received()
    assert (answer.code, len(answer.ext_fields["msgId"].split(","))) == (0, COUNT)


def test_one_that_is_damaged_at_its_end_is_refused_as_a_whole() -> None:
    broker = BrokerInMemory()
    (answer,), turns = send(broker, batch(COUNT)[:-1])
    assert (answer.code, turns[-1]) == (ResponseCode.SYSTEM_ERROR, 0)
    assert "longer than the rest of its batch" in str(answer.remark)


def test_refusal_of_a_later_stretch_keeps_the_earlier_ones() -> None:
    broker = BrokerInMemory()
    refused, put = PutResult(PutStatus.OS_PAGE_CACHE_BUSY), broker.store.put_messages
    broker.store.put_messages = lambda stretch: put(stretch) if len(stretch) == MOST_TOGETHER else refused
    (answer,), turns = send(broker, batch(COUNT))
    assert (answer.code, turns[-1]) == (ResponseCode.SYSTEM_BUSY, 2 * MOST_TOGETHER)
    assert answer.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_batch_is_cut_behind_so_many_messages(count: int) -> None:
    body = batch(3) + encode_entry(0, b"longer", b"k\x01v\x02") + batch(3)
    ends = list(cut_batch(body, count))
    entries = [encode_entry(0, b"b", b"")] * 3
    sizes = [len(one) for one in (*entries, encode_entry(0, b"longer", b"k\x01v\x02"), *entries)]
    expected = [sum(sizes[: first + count]) for first in range(0, len(sizes), count)]
    assert ends == expected


@pytest.mark.parametrize("cut", range(1, 22))
def test_an_entry_that_does_not_fit_is_found(cut: int) -> None:
    with pytest.raises(RecordError, match="longer than the rest of its batch"):
        list(cut_batch(batch(4)[:-cut], 2))
