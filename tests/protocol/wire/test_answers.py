"""Answers made from templates equal what the general encoder makes of them, for each response header there is."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.headers import GetKVConfigResponseHeader, PullMessageResponseHeader
from twisted_mq.protocol.headers.fields import FieldKind
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.wire.answers import answer_encoder
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.protocol.wire.header_fields import WireField, wire_fields

TEXTS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=300)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VALUES = {FieldKind.TEXT: TEXTS, FieldKind.INT32: INT32, FieldKind.INT64: INT64, FieldKind.BOOLEAN: st.booleans()}
ALWAYS = {"MSG_REGION": 'a "region" of 100 %s', "zone": "é"}
"""Two names: the first sorts before those of most headers, the second after them."""

HEADERS = sorted(
    {spec.response_header for spec in REQUESTS.values() if spec.response_header}, key=lambda one: one.__name__
)


def values_of(field: WireField) -> st.SearchStrategy[Any]:
    """Return the values of a field; None if it may be left out."""
    values: st.SearchStrategy[Any] = VALUES[field.kind]
    return values if field.required or field.default is not None else st.none() | values


def headers(header_class: type) -> st.SearchStrategy[Any]:
    return st.builds(header_class, **{field.attribute: values_of(field) for field in wire_fields(header_class)})


def generally(
    request: RemotingCommand, code: int, remark: str | None, body: bytes, always: dict[str, str], header: object
) -> bytes:
    return encode_frame(request.answer(code, remark, {**always, **encode_header(header)}, body))


@pytest.mark.parametrize("header_class", HEADERS, ids=lambda one: one.__name__)
@given(
    data=st.data(),
    opaque=INT32,
    code=st.integers(0, 0xFFFF),
    remark=st.none() | TEXTS,
    body=st.binary(max_size=20),
    serialize_type=st.sampled_from(SerializeType),
    always=st.sampled_from([ALWAYS, {"MSG_REGION": ""}, {}]),
)
def test_template_equals_the_general_encoder(
    header_class: type,
    data: Any,
    opaque: int,
    code: int,
    remark: str | None,
    body: bytes,
    serialize_type: int,
    always: dict[str, str],
) -> None:
    is_sure = any(field.required or field.default is not None for field in wire_fields(header_class))
    encode: Any = answer_encoder(header_class, always if is_sure else ALWAYS)
    header = data.draw(headers(header_class))
    request = RemotingCommand(11, opaque, serialize_type=serialize_type)
    made = encode(request, code, remark, len(body), **attrs.asdict(header)) + body
    assert made == generally(request, code, remark, body, always if is_sure else ALWAYS, header)


def test_values_left_out_are_those_of_the_header_class() -> None:
    request = RemotingCommand(11, 7)
    encode = answer_encoder(PullMessageResponseHeader)
    values = {"suggest_which_broker_id": 0, "next_begin_offset": 1, "min_offset": 0, "max_offset": 2}
    header = PullMessageResponseHeader(**values)
    assert encode(request, 0, "FOUND", 0, **values) == generally(request, 0, "FOUND", b"", {}, header)


def test_a_value_past_64_kib_has_its_length_in_the_binary_form() -> None:
    request, value = RemotingCommand(101, 7, serialize_type=SerializeType.ROCKETMQ), "v" * 70_000
    made = answer_encoder(GetKVConfigResponseHeader, ALWAYS)(request, 0, None, 0, value=value)
    assert made == generally(request, 0, None, b"", ALWAYS, GetKVConfigResponseHeader(value=value))


def test_nothing_can_be_made_ready_where_every_field_may_miss() -> None:
    with pytest.raises(ValueError, match=r"nothing to make ready .*: \['value'\]"):
        answer_encoder(GetKVConfigResponseHeader)
