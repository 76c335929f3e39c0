"""Messages as users meet them: what a producer sends and what a consumer receives (Apache: Message, MessageExt)."""

from __future__ import annotations

from collections.abc import Iterable

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
    `msg_id` is the offset id: it names the broker and the place in its log.
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
