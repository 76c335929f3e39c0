"""Sends a message that is not to be delivered at once to where it waits (Apache: HookUtils.handleScheduleMessage).

    DELAY n                                          SCHEDULE_TOPIC_XXXX, queue n - 1
    TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS   rmq_sys_wheel_timer, queue 0, with the second in TIMER_OUT_MS

REAL_TOPIC and REAL_QID keep its real topic and queue. DELAY wins over the other three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import MessageSysFlag, transaction_value
from twisted_mq.protocol.messages.delay_levels import parse_delay_levels
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC, TIMER_TOPIC
from twisted_mq.protocol.text.java import from_utf8, parse_int, utf8
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_DEL_UNIQKEY,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TIMER_OUT_MS,
    delete_property,
    encode_properties,
)
from twisted_mq.storage.interfaces import InnerMessage

TIMER_PROPERTIES = (PROPERTY_TIMER_DELAY_SEC, PROPERTY_TIMER_DELAY_MS, PROPERTY_TIMER_DELIVER_MS)
"""In the order in which they are checked."""
POSTPONING = frozenset({PROPERTY_DELAY_TIME_LEVEL, *TIMER_PROPERTIES})
"""A message without one of these is delivered at once."""
NO_CHANGES: Mapping[str, str | None] = MappingProxyType({})
_WHOLE = (MessageSysFlag.TRANSACTION_NOT_TYPE, MessageSysFlag.TRANSACTION_COMMIT_TYPE)


class PostponeRefused(BrokerError):
    """Raised for a time that cannot be served; `status` is Apache's PutMessageStatus."""

    def __init__(self, status: str, response_code: int, remark: str) -> None:
        super().__init__(response_code, remark)
        self.status = status


class Postponement:
    """Sends messages that ask for a delay to where they wait.

    `crowd(ms)` returns how many messages wait for a second; `options` are the broker's, read at each message. Timers
    follow `now_ms`; `steps_ms` returns how far the time of day was set since the start, so that a clock that is set
    changes no delay. `top_level` is the longest delay level.
    """

    def __init__(
        self,
        options: BrokerOptions,
        now_ms: Callable[[], int],
        random: Random,
        crowd: Callable[[int], int] = lambda deliver_ms: 0,
        steps_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._options = options
        self._now_ms = now_ms
        self._random = random
        self.top_level = max(parse_delay_levels(options.message_delay_level), default=0)
        self._crowd = crowd
        self._steps_ms = steps_ms

    def apply(self, message: InnerMessage) -> InnerMessage:
        """Return the message; if it has to wait, its topic, queue and properties are changed. Raises BrokerError."""
        if transaction_value(message.sys_flag) not in _WHOLE:
            return message
        properties = message.property_map
        level = self._level(properties)
        timed = not properties.keys().isdisjoint(TIMER_PROPERTIES) and message.topic != TIMER_TOPIC
        if level > 0:
            changes: dict[str, str | None] = dict.fromkeys(TIMER_PROPERTIES) if timed else {}
            if level > self.top_level:
                level = self.top_level
                changes[PROPERTY_DELAY_TIME_LEVEL] = str(level)
            send_to(message, SCHEDULE_TOPIC, level - 1, changes)
        elif timed and PROPERTY_TIMER_OUT_MS not in properties:
            self._wait_for_time(message)
        return message

    @staticmethod
    def _level(properties: Mapping[str, str]) -> int:
        text = properties.get(PROPERTY_DELAY_TIME_LEVEL)
        if text is None:
            return 0
        level = parse_int(text)
        if level is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"property DELAY: must be a level of at least 1, got {text!r}")
        return level

    def _wait_for_time(self, message: InnerMessage) -> None:
        options, now = self._options, self._now_ms()
        if not options.timer_wheel_enable:
            remark = "accurate timer message is not enabled, timerWheelEnable is false"
            raise PostponeRefused("WHEEL_TIMER_NOT_ENABLE", ResponseCode.SYSTEM_ERROR, remark)
        deliver_ms = self._deliver_ms(message.property_map, now)
        if deliver_ms is None or deliver_ms - now > options.timer_max_delay_sec * 1000:
            raise self._illegal()
        if deliver_ms > now:
            deliver_ms = last_tick_before(deliver_ms, options.timer_precision_ms)
            self._check_crowd(deliver_ms)
            send_to(message, TIMER_TOPIC, 0, {PROPERTY_TIMER_OUT_MS: str(deliver_ms)})
        elif PROPERTY_TIMER_DEL_UNIQKEY in message.property_map:
            raise self._illegal()

    def tick(self, name: str, text: str) -> int | None:
        """Return the tick at which messages with this timer property wait; None if they have to be looked at one by one."""
        options, now = self._options, self._now_ms()
        deliver_ms = self._deliver_ms({name: text}, now)
        if deliver_ms is None or not options.timer_wheel_enable:
            return None
        tick_ms = last_tick_before(deliver_ms, options.timer_precision_ms)
        is_near = now < deliver_ms <= now + options.timer_max_delay_sec * 1000
        return tick_ms if is_near and self._crowd(tick_ms) <= options.timer_congest_num_each_slot else None

    def _deliver_ms(self, properties: Mapping[str, str], now: int) -> int | None:
        """Return when timers are to deliver it; None if the time is not a number."""
        name = next(name for name in TIMER_PROPERTIES if name in properties)
        value = parse_int(properties[name], 64)
        if value is None:
            return None
        if name == PROPERTY_TIMER_DELIVER_MS:
            return value - self._steps_ms()
        return now + (value * 1000 if name == PROPERTY_TIMER_DELAY_SEC else value)

    def _illegal(self) -> PostponeRefused:
        remark = (
            "timer message illegal, the delay time should not be bigger than the max delay"
            f" {self._options.timer_max_delay_sec * 1000}ms; or if set del msg,"
            " the delay time should be bigger than the current time"
        )
        return PostponeRefused("WHEEL_TIMER_MSG_ILLEGAL", ResponseCode.MESSAGE_ILLEGAL, remark)

    def _check_crowd(self, deliver_ms: int) -> None:
        """Refuse messages that are too many for one second: always from twice the limit on, and at random from the limit on."""
        limit = self._options.timer_congest_num_each_slot
        crowd = self._crowd(deliver_ms)
        if crowd <= limit:
            return
        if crowd < limit * 2 and self._random.randrange(limit) >= crowd - limit:
            return
        remark = (
            f"timer message is under flow control, max num limit is {limit * 2} or the current value is greater than"
            f" {limit} and less than {limit * 2}, trigger random flow control"
        )
        raise PostponeRefused("WHEEL_TIMER_FLOW_CONTROL", ResponseCode.SYSTEM_ERROR, remark)


def last_tick_before(deliver_ms: int, precision_ms: int) -> int:
    """Return the wheel's tick that ends at or after a time: for 12:00:05.000 and 12:00:04.001 it is 12:00:04."""
    return (deliver_ms - 1) // precision_ms * precision_ms


def send_to(message: InnerMessage, topic: str, queue_id: int, changes: Mapping[str, str | None] = NO_CHANGES) -> None:
    """Send a message to another topic and queue; the real ones become properties, together with the other changes."""
    real = {PROPERTY_REAL_TOPIC: message.topic, PROPERTY_REAL_QUEUE_ID: str(message.queue_id)}
    set_properties(message, {**changes, **real})
    message.topic, message.queue_id = topic, queue_id


def set_properties(message: InnerMessage, changes: Mapping[str, str | None]) -> None:
    """Change properties in the map and in the text form; None removes one."""
    properties, text = message.property_map, message.properties
    replaced = properties.keys() & changes.keys()
    for name in replaced:
        del properties[name]
        text = utf8(delete_property(from_utf8(text), name))
    if text and not text.endswith(b"\x02"):
        text += b"\x02"
    added = {name: value for name, value in changes.items() if value is not None}
    properties.update(added)
    message.properties = text + utf8(encode_properties(added))
