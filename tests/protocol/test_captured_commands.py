"""Every recorded command whose code has a header or body class reads, and is written again to the same fields and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from twisted_mq.protocol.bodies import HeartbeatData, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BodyError, HeaderError
from twisted_mq.protocol.requests.registry import REQUESTS, Payload, RequestSpec
from twisted_mq.protocol.text.fastjson import loads
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.protocol.wire.header_fields import wire_fields

CAPTURES = Path(__file__).parents[2] / "interop" / "captures" / "remoting"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.frames"))

HOOKS_AND_RULES = {"AccessKey", "Signature", "OnsChannel", "ReqT", "_UNIQUE_KEY_QUERY", "MSG_REGION", "TRACE_ON"}
"""Fields outside of the declared headers: what signing and namespaces add, and what the codes' rules add."""

REFUSED = {
    "GetRouteInfoRequestHeader.topic: required, but missing, got None",
    "SendMessageRequestHeaderV2.a: required, but missing, got None",
    "SendMessageRequestHeaderV2.d: not of type int, -2^31 to 2^31-1, got 'notanumber'",
}
"""The odd requests of errors.frames."""


@attrs.frozen
class Recorded:
    """A command with the row of its code, and the header and body classes it has by that."""

    command: RemotingCommand
    spec: RequestSpec
    header_class: Any
    body_class: Any


def recorded(name: str) -> Iterator[Recorded]:
    """All requests of a capture, and the answers that succeeded."""
    commands = FrameDecoder().receive_data((CAPTURES / f"{name}.frames").read_bytes())
    notes = json.loads((CAPTURES / f"{name}.json").read_text())
    for command, note in zip(commands, notes, strict=True):
        if not command.is_response and command.code in REQUESTS:
            spec = REQUESTS[RequestCode(command.code)]
            yield Recorded(command, spec, spec.request_header, spec.request_body)
        elif command.is_response and command.code == 0 and note.get("answers") is not None:
            spec = REQUESTS[RequestCode(commands[note["answers"]].code)]
            yield Recorded(command, spec, spec.response_header, spec.response_body)


def test_captures_hold_thousands_of_headers_and_hundreds_of_bodies() -> None:
    commands = [one for name in NAMES for one in recorded(name)]
    assert sum(one.header_class is not None for one in commands) > 2000
    assert sum(bool(one.command.body) and one.body_class is not None for one in commands) > 800


def as_java_reads(fields: dict[str, str], header_class: Any) -> dict[str, str]:
    """The known fields as text; the C++ client's 0 and 1 for booleans are false to Java."""
    kinds = {field.wire: field.kind.name for field in wire_fields(header_class)}
    read = {}
    for wire, text in fields.items():
        if wire in kinds:
            read[wire] = str(text == "true").lower() if kinds[wire] == "BOOLEAN" else text
    return read


@pytest.mark.parametrize("name", NAMES)
def test_headers_read_and_are_written_to_the_same_fields(name: str) -> None:
    for one in recorded(name):
        if one.header_class is None:
            continue
        try:
            header = decode_header(one.header_class, one.command)
        except HeaderError as error:
            assert str(error) in REFUSED
            continue
        assert encode_header(header) == as_java_reads(one.command.ext_fields, one.header_class)
        unknown = set(one.command.ext_fields) - {field.wire for field in wire_fields(one.header_class)}
        assert unknown <= HOOKS_AND_RULES


def without_order(value: Any) -> Any:
    """Maps with text keys, arrays sorted: Apache writes sets in no order."""
    if isinstance(value, dict):
        return {str(key): without_order(member) for key, member in value.items()}
    return sorted(map(without_order, value), key=json.dumps) if isinstance(value, list) else value


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cpp_client"])
def test_bodies_read_and_are_written_to_the_same_json(name: str) -> None:
    for one in recorded(name):
        if not one.command.body or one.body_class is None or isinstance(one.body_class, Payload):
            continue
        if one.command.body == b"{not json":
            continue
        body = decode_body(one.body_class, one.command.body)
        assert without_order(loads(encode_body(body))) == without_order(loads(one.command.body))
        assert decode_body(one.body_class, encode_body(body, standard=True)) == body


def test_heartbeats_of_the_cpp_client_read_like_those_of_java() -> None:
    beats = [decode_body(HeartbeatData, one.command.body) for one in recorded("cpp_client") if one.command.code == 34]
    assert {consumer.consume_type for beat in beats for consumer in beat.consumer_data_set} == {"CONSUME_PASSIVELY"}
    assert [decode_body(HeartbeatData, encode_body(beat)) for beat in beats] == beats


def test_a_heartbeat_that_is_no_json_is_refused() -> None:
    damaged = [one.command.body for one in recorded("errors") if one.body_class is HeartbeatData]
    with pytest.raises(BodyError, match="HeartbeatData: no JSON"):
        for body in damaged:
            decode_body(HeartbeatData, body)
