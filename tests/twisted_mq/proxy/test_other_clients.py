"""Calls of clients of other makers and ages: fields and languages that are not known, no deadline."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.twisted_mq.proxy.test_together import ACK, RECEIVE, SEND, Served, ack, received, send
from twisted_mq.proxy import messages as v2
from twisted_mq.proxy.grpc.status import GrpcStatus

NEWER = b"\xba\x3e\x03new"
"""Field 999, a text."""


@attrs.frozen
class Encoded:
    """A request as bytes."""

    data: bytes

    def SerializeToString(self) -> bytes:
        return self.data


def newer(request: Any) -> Encoded:
    """Return a request, and its first part, with a field that is not known."""
    part = request.messages if hasattr(request, "messages") else request.entries
    first = part[0].SerializeToString() + NEWER
    del part[0]
    number = request.DESCRIPTOR.fields_by_name["messages" if hasattr(request, "messages") else "entries"].number
    assert len(first) < 128
    return Encoded(bytes((number << 3 | 2, len(first))) + first + request.SerializeToString() + NEWER)


@pytest.mark.parametrize("together", [True, False])
def test_fields_of_newer_clients_are_ignored(together: bool) -> None:
    served = Served(together=together)
    messages = received(served, 4)
    for stream in served.calls(ACK, [newer(ack("01", one.receipt_handle)) for one in messages]):
        [answer] = served.wire.answers(stream, v2.AckMessageResponse)
        assert answer.status.code == v2.Code.OK
    in_flight = served.broker.controller.pop.in_flight
    assert [in_flight.count("T", "G", queue) for queue in range(4)] == [0] * 4
    before = served.broker.store.max_offset_in_queue("T", 0)
    small = {"born_host": "b", "message_id": "01"}
    for stream in served.calls(SEND, [newer(send(**small)) for _ in range(4)]):
        [answer] = served.wire.answers(stream, v2.SendMessageResponse)
        assert (answer.status.code, served.wire.status(stream)) == (v2.Code.OK, (GrpcStatus.OK, ""))
    assert served.broker.store.max_offset_in_queue("T", 0) == before + 1


def test_language_that_is_not_known_is_other() -> None:
    served = Served()
    for number, language in enumerate(("KLINGON", "", "GOLANG", "RUST")):
        settings = v2.TelemetryCommand(settings={"client_type": 1, "publishing": {"topics": [{"name": "T"}]}})
        path = f"/{v2.SERVICE}/Telemetry"
        more = {"x_mq_language": language} if language else {}
        served.wire.call(path, settings, end=False, x_mq_client_id=f"c{number}", **more)
    found = {one.client_id: one.language for one in served.port.messaging.clients}
    assert found == {"c0": "OTHER", "c1": "OTHER", "c2": "GO", "c3": "RUST"}


@pytest.mark.parametrize("client_id", ["", "\u00e9", "unknown"])
def test_an_answer_on_a_stream_without_settings_is_dropped(caplog: pytest.LogCaptureFixture, client_id: str) -> None:
    served = Served()
    answer = v2.TelemetryCommand(thread_stack_trace={"nonce": "1"}, status={"code": v2.Code.OK})
    named = {"x_mq_client_id": client_id} if client_id else {}
    stream = served.wire.call(f"/{v2.SERVICE}/Telemetry", answer, end=False, **named)
    served.exchange()
    assert (served.wire.status(stream), served.wire.shared.calls) == (None, 1)
    assert [one for one in caplog.records if one.levelname in ("ERROR", "CRITICAL")] == []


def test_a_receive_without_a_deadline_waits_as_long_as_the_settings_of_the_proxy_allow() -> None:
    served = Served()
    received(served, 1)
    asked = v2.ReceiveMessageRequest(
        group={"name": "G"}, message_queue={"topic": {"name": "T"}}, invisible_duration={"seconds": 30},
        filter_expression={"type": 1, "expression": "*"}, batch_size=1,
    )  # fmt: skip
    [stream] = served.calls(RECEIVE, [asked])
    answered = []
    for seconds in range(25):
        served.broker.clock.advance(1)
        served.exchange()
        if served.wire.status(stream) is not None:
            answered.append(seconds + 1)
    assert 20 <= answered[0] <= 21
    assert served.wire.answers(stream, v2.ReceiveMessageResponse)[0].status.code == v2.Code.MESSAGE_NOT_FOUND
