"""The message a user makes: protocol's Message with tags and keys as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twisted_mq.protocol.messages import message as protocol_message
from twisted_mq.protocol.text.properties import (
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
)

_TIMES = (PROPERTY_TIMER_DELAY_SEC, PROPERTY_TIMER_DELAY_MS, PROPERTY_TIMER_DELIVER_MS)
_NO_TIMES = (None, None, None)


class Message(protocol_message.Message):
    """A message to send: `Message(topic="T", body=b"..", tags="A", keys="k", properties={"color": "red"})`.

    `keys` is one key or several. Sending does not change the message; sent twice it is two messages, each with its
    own unique key, unless the UNIQ_KEY property was set by hand. It is delivered later by one of the broker's delay
    levels, after so many seconds or ms, or at a time in ms since 1970: then its SendResult has a handle to recall it.
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
        delay_time_seconds: int | None = None,
        delay_time_ms: int | None = None,
        deliver_time_ms: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(topic, body, flag, dict(properties) if properties else {})
        if tags:
            self.tags = tags
        if keys:
            self.keys = [keys] if isinstance(keys, str) else list(keys)
        if delay_time_level:
            self.delay_time_level = delay_time_level
        times = (delay_time_seconds, delay_time_ms, deliver_time_ms)
        if times != _NO_TIMES:
            self.properties.update(
                (name, str(time)) for name, time in zip(_TIMES, times, strict=True) if time is not None
            )
