"""Messages as users meet them: what a producer sends and what a consumer receives (Apache: Message, MessageExt)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import attrs

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import (
    KEY_SEPARATOR,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
)


def _split_keys(properties: dict[str, str]) -> list[str]:
    return properties.get(PROPERTY_KEYS, "").split()


@attrs.define
class Message:
    """A message to send. `flag` is the user's own number; the broker carries it and looks at nothing in it."""

    topic: str
    body: bytes
    flag: int = 0
    properties: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def make(
        cls,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        properties: dict[str, str] | None = None,
    ) -> Message:
        """Return a message with tags, keys (one, or several) and the user's own properties."""
        message = cls(topic, body, properties=dict(properties or {}))
        if tags:
            message.tags = tags
        if keys:
            message.keys = [keys] if isinstance(keys, str) else list(keys)
        return message

    @property
    def tags(self) -> str | None:
        """The tags, by which subscriptions select; None without."""
        return self.properties.get(PROPERTY_TAGS)

    @tags.setter
    def tags(self, tags: str) -> None:
        self.properties[PROPERTY_TAGS] = tags

    @property
    def keys(self) -> list[str]:
        """The keys that the index finds the message by."""
        return _split_keys(self.properties)

    @keys.setter
    def keys(self, keys: Iterable[str]) -> None:
        self.properties[PROPERTY_KEYS] = KEY_SEPARATOR.join(keys)

    @property
    def delay_time_level(self) -> int:
        """The broker's delay level, from 1; 0 for none."""
        return parse_int(self.properties.get(PROPERTY_DELAY_TIME_LEVEL)) or 0

    @delay_time_level.setter
    def delay_time_level(self, level: int) -> None:
        self.properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)

    @property
    def wait_store_message_ok(self) -> bool:
        """Return whether the send answer waits for flush and replication; True by default."""
        return self.properties.get(PROPERTY_WAIT_STORE_MSG_OK, "true").lower() == "true"

    @property
    def unique_key(self) -> str | None:
        """The id its producer gave it; None before it is sent."""
        return self.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)


@attrs.frozen(slots=False)  # with slots its making takes a tenth more of what a message costs a consumer
class MessageExt:
    """A stored message. Times are ms since 1970, hosts `address:port`, `body` decompressed unless asked otherwise.

    `sys_flag`, `body_crc` and `store_size` are those of the record, also where the body was decompressed.
    `msg_id` is the offset id: it names the broker and the place in its log. Some fields of a message that was read from a
    record are decoded when they are first asked for, see `LateField`.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    store_size: int
    body_crc: int
    sys_flag: int
    flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    properties: dict[str, str]
    body: bytes
    msg_id: str

    @property
    def tags(self) -> str | None:
        """The tags, by which subscriptions select; None without."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys that the index finds the message by."""
        return _split_keys(self.properties)

    @property
    def unique_key(self) -> str | None:
        """The id its producer gave it: what users call the message id. None where the producer gave none."""
        return self.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)

    @property
    def transaction_type(self) -> int:
        """Its transaction type, of MessageSysFlag's."""
        return self.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE

    def __getstate__(self) -> dict[str, object]:
        """Return all fields, for pickle and copy."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}


Extended = TypeVar("Extended", bound=MessageExt)

LATE = "_late"
"""In the dict of a message: the bytes from which its late fields are made."""
NOTED = "_noted"
"""Beside it: what was noted before the properties were made."""


@attrs.frozen
class LateField:
    """A field of MessageExt that most consumers do not ask for: it is made of the record's bytes at the first time.

    It is no data descriptor, so a value in the message's dict comes before it.
    """

    name: str
    make: Callable[[Any], Any]

    def __get__(self, message: MessageExt, owner: type) -> Any:
        held = message.__dict__
        value = self.make(held[LATE])
        if self.name == "properties":
            for more in held[NOTED]:
                value.update(more)
        held[self.name] = value
        return value


def note(messages: Iterable[MessageExt], more: Mapping[str, str]) -> None:
    """Add properties that a consumer notes with messages. `more` must not change afterwards."""
    for held in map(vars, messages):
        if "properties" in held:
            held["properties"].update(more)
        else:
            held[NOTED] = (*held[NOTED], more)


def with_more(kind: type[Extended], message: MessageExt, **more: object) -> Extended:
    """Return a message of a subclass, with further fields. Late fields stay late."""
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", {**vars(message), **more})
    return made


def make_late(**fields: Callable[[Any], Any]) -> None:
    """Let messages without these fields make them of the bytes that they hold in LATE."""
    for name, make in fields.items():
        setattr(MessageExt, name, LateField(name, make))
