"""Topics whose bodies are typed values: a serializer converts values to bytes and back.

orders = TypedTopic("Orders", json_of(Order))
await producer.send(orders.message(Order("7", 3), keys="7"))
...
order = orders.value(message)                 # typed Order; BodyIllegal for any other body
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import attrs
import msgspec

from twisted_mq.client.core.argument_checks import check_function
from twisted_mq.client.core.errors import ClientError, MessageIllegal
from twisted_mq.client.core.message import Message
from twisted_mq.client.core.name_checks import check_topic
from twisted_mq.protocol.messages.message import MessageExt

Value = TypeVar("Value")


class BodyIllegal(ClientError):
    """Raised when the serializer cannot read a message's body. The text names topic and id; `__cause__` is its error."""


@attrs.frozen
class Serializer(Generic[Value]):
    """A pair of functions: `dumps` returns the bytes of a value, `loads` the value of bytes."""

    dumps: Callable[[Value], bytes]
    loads: Callable[[bytes], Value]

    def __attrs_post_init__(self) -> None:
        """Raise ClientOptionIllegal for an argument that is not a function."""
        check_function(self.dumps, "dumps", "a function that returns the bytes of a value")
        check_function(self.loads, "loads", "a function that returns the value of bytes")


as_bytes: Serializer[bytes] = Serializer(bytes, bytes)
as_text: Serializer[str] = Serializer(str.encode, bytes.decode)


def json_of(kind: type[Value]) -> Serializer[Value]:
    """Return a serializer to JSON for a msgspec.Struct, dataclass, attrs class, TypedDict, or plain types as dict[str, int]."""
    return Serializer(msgspec.json.Encoder().encode, msgspec.json.Decoder(kind).decode)


class PydanticModel(Protocol):
    """The methods of a pydantic model that are called."""

    def model_dump_json(self) -> str: ...

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Any: ...


ModelT = TypeVar("ModelT", bound=PydanticModel)


def pydantic_of(model: type[ModelT]) -> Serializer[ModelT]:
    """Return a serializer to JSON for a pydantic model, which validates what it reads."""
    return Serializer(lambda value: value.model_dump_json().encode(), model.model_validate_json)


class ProtobufMessage(Protocol):
    """The methods of a class made by protoc that are called."""

    def SerializeToString(self) -> bytes: ...

    @classmethod
    def FromString(cls, s: bytes) -> Any: ...


ProtobufT = TypeVar("ProtobufT", bound=ProtobufMessage)


def protobuf_of(message: type[ProtobufT]) -> Serializer[ProtobufT]:
    """Return a serializer for a protobuf message."""
    return Serializer(lambda value: value.SerializeToString(), message.FromString)


@attrs.frozen
class TypedTopic(Generic[Value]):
    """A topic's name and its serializer. Makes messages to send and reads received ones, in every API of this library."""

    name: str = attrs.field()
    serializer: Serializer[Value]

    @name.validator
    def _check_name(self, option: object, value: str) -> None:
        check_topic(value)

    def message(self, value: Value, **fields: Any) -> Message:
        """Return a message with the value's bytes; `fields` are those of Message. Raises MessageIllegal."""
        try:
            body = self.serializer.dumps(value)
        except Exception as error:
            raise MessageIllegal(f"topic {self.name}: {value!r} cannot be serialized: {error}") from error
        return Message(self.name, body, **fields)

    def value(self, message: MessageExt) -> Value:
        """Return the value of a message's body. Raises BodyIllegal: send such a message back as a dead letter."""
        try:
            return self.serializer.loads(message.body)
        except Exception as error:
            raise BodyIllegal(
                f"topic {message.topic}: the body of message {message.unique_key or message.msg_id} cannot be read: {error}"
            ) from error
