"""Values in, values out: each serializer, and errors for bodies that cannot be read."""

from __future__ import annotations

import struct
from typing import Any

import attrs
import msgspec
import pydantic
import pytest
from google.protobuf import duration_pb2

from tests.support.messages import received
from twisted_mq.client import (
    BodyIllegal,
    ClientOptionIllegal,
    MessageExt,
    MessageIllegal,
    Serializer,
    TypedTopic,
    as_bytes,
    as_text,
    json_of,
    protobuf_of,
    pydantic_of,
)


class Order(msgspec.Struct):
    number: str
    chairs: int


@attrs.frozen
class Attrs:
    number: str


class Model(pydantic.BaseModel):
    number: str
    chairs: pydantic.PositiveInt


PAIR: Serializer[tuple[int, int]] = Serializer(
    lambda pair: struct.pack(">ii", *pair), lambda body: struct.unpack(">ii", body)
)
CASES: list[tuple[Serializer[Any], Any, bytes]] = [
    (as_bytes, b"\0\1", b"\0\1"),
    (as_text, "größe", "größe".encode()),
    (json_of(Order), Order("7", 3), b'{"number":"7","chairs":3}'),
    (json_of(Attrs), Attrs("7"), b'{"number":"7"}'),
    (json_of(dict[str, int]), {"a": 1}, b'{"a":1}'),
    (pydantic_of(Model), Model(number="7", chairs=3), b'{"number":"7","chairs":3}'),
    (protobuf_of(duration_pb2.Duration), duration_pb2.Duration(seconds=7), b"\x08\x07"),
    (PAIR, (1, 2), b"\0\0\0\1\0\0\0\2"),
]


def stored(body: bytes) -> MessageExt:
    return received(body, unique_key="K1")


@pytest.mark.parametrize(("serializer", "value", "body"), CASES, ids=lambda one: type(one).__name__)
def test_values_become_bodies_and_come_back(serializer: Serializer[Any], value: Any, body: bytes) -> None:
    topic = TypedTopic("Orders", serializer)
    message = topic.message(value, keys="7", tags="new")
    assert (message.topic, message.body, message.keys, message.tags) == ("Orders", body, ["7"], "new")
    assert topic.value(stored(body)) == value


BAD = [
    (as_text, b"\xff"),
    (json_of(Order), b'{"number":7,"chairs":3}'),
    (pydantic_of(Model), b'{"number":"7","chairs":-1}'),
    (protobuf_of(duration_pb2.Duration), b"\xff\xff"),
    (PAIR, b"short"),
]


@pytest.mark.parametrize(("serializer", "body"), BAD)
def test_a_body_that_is_none_is_told_with_its_message(serializer: Serializer[Any], body: bytes) -> None:
    with pytest.raises(BodyIllegal, match="topic Orders: the body of message K1 cannot be read: ") as told:
        TypedTopic("Orders", serializer).value(stored(body))
    assert told.value.__cause__ is not None


def test_a_value_that_is_none_is_not_sent() -> None:
    with pytest.raises(MessageIllegal, match="topic Orders: 7 cannot be serialized: "):
        TypedTopic("Orders", as_text).message(7)  # type: ignore[arg-type]


def test_a_topics_name_and_functions_are_checked() -> None:
    with pytest.raises(ClientOptionIllegal, match="topic 'no good': "):
        TypedTopic("no good", as_text)
    with pytest.raises(ClientOptionIllegal, match="loads: must be a function, got None"):
        Serializer(bytes, None)  # type: ignore[arg-type]
