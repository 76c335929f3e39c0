"""Records in revive logs, byte for byte as Apache's broker 5.3.3 wrote them."""

from __future__ import annotations

import pytest

from twisted_mq.protocol.bodies import AckMsg, BatchAck, BatchAckMsg, PopCheckPoint, decode_body, encode_body

WRITTEN = [
    (
        PopCheckPoint(0, 1795284883364, 5000, 0, 3, 0, "T1", "G", 0, [0, 1, 2], "broker-a"),
        b'{"bm":0,"bn":"broker-a","c":"G","d":[0,1,2],"it":5000,"n":3,"pt":1795284883364,"q":0,'
        b'"reviveTime":1795284888364,"ro":0,"so":0,"t":"T1"}',
    ),
    (
        AckMsg(1, 0, "G", "T1", 0, 1795284884053, "broker-a"),
        b'{"ao":1,"bn":"broker-a","c":"G","pt":1795284884053,"q":0,"so":0,"t":"T1"}',
    ),
    (
        BatchAckMsg(-1, 2, "G", "T1", 0, 1795284884352, "broker-a", [2]),
        b'{"ao":-1,"aol":[2],"bn":"broker-a","c":"G","pt":1795284884352,"q":0,"so":2,"t":"T1"}',
    ),
]


@pytest.mark.parametrize(("body", "text"), WRITTEN)
def test_written_as_by_apaches_broker_and_read_back(body: object, text: bytes) -> None:
    assert encode_body(body) == text
    assert decode_body(type(body), text) == body


def test_names_of_older_peers_are_read() -> None:
    older = b'{"ackOffset":1,"brokerName":"b","consumerGroup":"G","popTime":5,"queueId":3,"startOffset":0,"topic":"T"}'
    assert decode_body(AckMsg, older) == AckMsg(1, 0, "G", "T", 3, 5, "b")
    assert decode_body(BatchAck, b'{"retry":"1","bitSet":"Aw==","t":"T"}') == BatchAck(None, "T", "1", bit_set="Aw==")


def test_check_point_knows_its_messages_with_and_without_differences() -> None:
    sparse = PopCheckPoint(start_offset=10, count=2, offset_differences=[1, 4])
    assert [sparse.offset_of(index) for index in (0, 1)] == [11, 14]
    assert [sparse.index_of(offset) for offset in (10, 11, 14, 15)] == [None, 0, 1, None]
    older = PopCheckPoint(start_offset=10, count=2)
    assert [older.offset_of(index) for index in (0, 1)] == [10, 11]
    assert [older.index_of(offset) for offset in (9, 10, 11, 12)] == [None, 0, 1, None]
