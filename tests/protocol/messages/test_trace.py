"""Trace records: those that Apache's client sent, and every field in both directions."""

from __future__ import annotations

import attrs
import pytest

from tests.support.captures import frames
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.trace import (
    ConsumeEndTrace,
    ConsumeStartTrace,
    EndTransactionTrace,
    PublishTrace,
    RecallTrace,
    Trace,
    decode_traces,
    encode_trace,
)
from twisted_mq.protocol.wire.framing import FrameDecoder


def captured() -> list[bytes]:
    """The bodies of what was sent to the trace topic."""
    commands = FrameDecoder().receive_data(frames("message_trace"))
    sends = [one for one in commands if one.code == RequestCode.SEND_MESSAGE_V2 and not one.is_response]
    return [one.body for one in sends if (one.ext_fields or {})["b"] == "RMQ_SYS_TRACE_TOPIC"]


def test_captured_records_are_read_and_written_again() -> None:
    bodies = captured()
    assert len(bodies) >= 2
    for body in bodies:
        assert "".join(map(encode_trace, decode_traces(body))).encode() == body


def test_captured_fields_have_their_meaning() -> None:
    first = next(decode_traces(captured()[0]))
    assert first == PublishTrace(
        timestamp=1795218105284,
        region_id="DefaultRegion",
        group="PG_trace",
        topic="CapTrace",
        msg_id="C000020263A24E0E2F2A66EE7BC30000",
        tags="T",
        keys="trk0",
        store_host="127.0.0.2:20911",
        body_length=7,
        cost_ms=9,
        message_type=0,
        offset_msg_id="7F000002000051AF00000000000136D1",
        success=True,
    )


@pytest.mark.parametrize(
    "trace",
    [
        PublishTrace(1, "R", "G", "T", "ID", None, None, "h:1", 2, 3, 1, "OID", False),
        ConsumeStartTrace(1, "R", "G", "REQ", "ID", 4, None),
        ConsumeEndTrace("REQ", "ID", 5, False, "a b", 4, 6, "G"),
        EndTransactionTrace(1, "R", "G", "T", "ID", "A", "k", "h:1", 2, None, "COMMIT_MESSAGE", True),
        RecallTrace(1, "R", "G", "T", "ID", True),
    ],
    ids=lambda trace: type(trace).__name__,
)
def test_every_field_comes_back(trace: Trace) -> None:
    encoded = encode_trace(trace)
    assert encoded.count("\x01") == len(attrs.fields(type(trace)))
    assert list(decode_traces(encoded.encode())) == [trace]


def test_records_of_older_clients_lack_the_last_fields() -> None:
    assert list(decode_traces(b"SubAfter\x01REQ\x01ID\x015\x01true\x01k\x02Other\x01x\x02")) == [
        ConsumeEndTrace("REQ", "ID", 5, True, "k")
    ]
