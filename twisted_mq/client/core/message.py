"""The message that users make: protocol's Message with tags and keys as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twisted_mq.client.core.times import Length, Moment, length_ms, moment_ms
from twisted_mq.protocol.messages import message as protocol_message
from twisted_mq.protocol.text.properties import (
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
)


class Message(protocol_message.Message):
    """A message to send: `Message(topic="T", body=b"..", tags="A", keys="k", properties={"color": "red"})`.

    `keys` is one key or several. Sending does not change the message. Sent twice, it is two messages, each with its own unique
    key, unless the UNIQ_KEY property was set by hand.

    For a later delivery, give one of the broker's delay levels, a delay in seconds (0.9, or a timedelta), or a time (a
    datetime, or float seconds since 1970). With a delay in seconds or a time, the SendResult has a handle to recall the
    message. A time out of range raises ClientOptionIllegal.
    """

    __slots__ = ()

    def __init__(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        *,
        flag: int = 0,
        delay_time_level: int = 0,
        delay_time_seconds: Length | None = None,
        deliver_time: Moment | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(topic, body, flag, dict(properties) if properties else {})
        if tags:
            self.tags = tags
        if keys:
            self.keys = [keys] if isinstance(keys, str) else list(keys)
        if delay_time_level:
            self.delay_time_level = delay_time_level
        if delay_time_seconds is not None:
            ms = length_ms(delay_time_seconds, "delay_time_seconds")
            name, delay = (PROPERTY_TIMER_DELAY_MS, ms) if ms % 1000 else (PROPERTY_TIMER_DELAY_SEC, ms // 1000)
            self.properties[name] = str(delay)
        if deliver_time is not None:
            self.properties[PROPERTY_TIMER_DELIVER_MS] = str(moment_ms(deliver_time, "deliver_time"))
