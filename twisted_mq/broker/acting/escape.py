"""Sends an acting slave's messages to other masters of their topics (Apache: EscapeBridge, enableRemoteEscape).

A slave's log is its master's copy: it appends nothing of its own. So what comes due while it acts, delayed and timed
messages and half messages of transactions, goes to another master, which stores it as a message of its own. A message
counts as sent when that master has acknowledged it with SUCCESS and by no other answer, so a message may be sent twice and is
never lost. What cannot be sent waits, and holds back what is behind it.

A returning master asks its slave which messages it has sent away, and delivers the rest itself. So the slave sends nothing new
for HOLD_SECONDS after that question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs
from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC, HALF_TOPIC, TIMER_TOPIC
from twisted_mq.protocol.names.topic_route import publish_info
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TIMER_DEQUEUE_MS,
    PROPERTY_TIMER_ENQUEUE_MS,
    PROPERTY_TIMER_OUT_MS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
    PROPERTY_WAIT_STORE_MSG_OK,
    encode_properties,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Invoke
from twisted_mq.remoting.errors import RemotingError
from twisted_mq.routing.errors import ClientError
from twisted_mq.routing.route_cache import RouteCache
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

SEND_SECONDS = 3.0
"""The time limit of one send (Apache: SEND_TIMEOUT)."""
AGAIN_SECONDS = 1.0
"""The pause after a failure; meanwhile nothing is sent."""
ROUTE_SECONDS = 5.0
"""The time for which a topic's route is used. After a failure the name servers are asked at once."""
DEFAULT_QUEUES = 8
HOLD_SECONDS = 5.0
"""The time for which a returning master's question holds messages back; meanwhile that master registers, or asks again."""
MOST_HELD_SECONDS = 60.0
"""The most that all questions together hold messages back: a stranger may ask, too."""
SETTLE_SECONDS = 2.0
"""The longest wait of a question for sends that are under way: the master that asks waits 3 s (pre_online.ASK_SECONDS)."""
LOOK_SECONDS = 0.05
"""The interval at which a question looks whether those sends have ended."""

Key = tuple[object, ...]


class EscapeParts(Protocol):
    """The slave that acts."""

    options: BrokerOptions
    clock: interfaces.IReactorTime
    route_cache: RouteCache | None


@attrs.define(eq=False)
class EscapeBridge:
    """The sends of one acting slave. `wake` is called when a send has ended, well or not."""

    broker: EscapeParts
    invoke: Invoke
    wake: Callable[[], object]
    sent: int = 0
    _under_way: set[Key] = attrs.field(factory=set)
    _done: dict[Key, int] = attrs.field(factory=dict)
    _paused_until: float = 0.0
    _held_seconds: float = 0.0
    _turn: int = 0
    _failing: str | None = None
    _routes: dict[str, float] = attrs.field(factory=dict)
    """When the routes of topics were asked for."""
    log = Logger()

    @property
    def is_on(self) -> bool:
        """Return whether messages may leave for other masters at all."""
        return self.broker.options.enable_remote_escape and self.broker.route_cache is not None

    def put(self, message: InnerMessage) -> PutResult | None:
        """Return PUT_OK once another master has the message. Return None while it is on its way, or cannot leave now.

        A caller asks again with the same message until it gets PUT_OK.
        """
        key = _key(message)
        if key in self._done:
            self._done[key] -= 1
            if not self._done[key]:
                del self._done[key]
            return PutResult(PutStatus.PUT_OK)
        if self.is_on and key not in self._under_way and self.broker.clock.seconds() >= self._paused_until:
            self._under_way.add(key)
            defer.ensureDeferred(self._send(key, message)).addErrback(self._broken, key)
        return None

    async def hold(self) -> None:
        """Send nothing new for HOLD_SECONDS.

        Return once the sends under way have ended and their callers know, or after SETTLE_SECONDS.
        """
        clock = self.broker.clock
        now = clock.seconds()
        more = now + HOLD_SECONDS - max(now, self._paused_until)
        if self._held_seconds + more <= MOST_HELD_SECONDS:
            self._held_seconds += more
            self._pause(HOLD_SECONDS)
        else:
            self.log.warn(
                "questions of a returning master hold nothing back any more, after {n:.0f} s of it: what leaves now may be"
                " delivered twice",
                n=self._held_seconds,
            )
        while self._is_unsettled and clock.seconds() < now + SETTLE_SECONDS:
            await task.deferLater(clock, LOOK_SECONDS, lambda: None)
        if self._is_unsettled:
            self.log.warn(
                "the returning master is not told of {n} sends that have no answer: it may deliver those messages again",
                n=len(self._under_way) + len(self._done),
            )

    @property
    def _is_unsettled(self) -> bool:
        return bool(self._under_way or self._done)

    def _pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, self.broker.clock.seconds() + seconds)

    async def send(self, message: InnerMessage) -> bool:
        """Send a message to another master of its topic. Return whether that has it."""
        message = escaped(message)
        try:
            await self._to_another(message)
        except (ClientError, RemotingError, ProtocolError, BrokerError) as error:
            self._pause(AGAIN_SECONDS)
            self._routes.pop(message.topic, None)
            if self._failing != str(error):
                self._failing = str(error)
                self.log.warn(
                    "message cannot be sent to another master, retrying: topic={t} {e}", t=message.topic, e=error
                )
            return False
        self._failing = None
        self.sent += 1
        return True

    async def _send(self, key: Key, message: InnerMessage) -> None:
        stored = await self.send(message)
        self._under_way.discard(key)
        if stored:
            self._done[key] = self._done.get(key, 0) + 1
        self.wake()

    def _broken(self, reason: failure.Failure, key: Key) -> None:
        self._under_way.discard(key)
        self._pause(AGAIN_SECONDS)
        self.log.failure("send to another master failed, retrying", reason)

    async def _to_another(self, message: InnerMessage) -> None:
        """Raises ClientError, RemotingError, ProtocolError or BrokerError."""
        cache = self.broker.route_cache
        if cache is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "no name server is set (namesrvAddr)")
        queue = await self._queue(cache, message)
        address = await cache.master(queue.broker_name, message.topic)
        answer = await self.invoke(address, self._request(message, queue), SEND_SECONDS)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, f"{queue.broker_name}: {answer.remark or 'no reason given'}")

    async def _queue(self, cache: RouteCache, message: InnerMessage) -> MessageQueue:
        """Return the next queue at another broker, as the name servers know it: routes change while masters are lost."""
        own, now, topic = self.broker.options.broker_name, self.broker.clock.seconds(), message.topic
        route = cache.get(topic)
        if route is None or now - self._routes.get(topic, now - ROUTE_SECONDS) >= ROUTE_SECONDS:
            route = await cache.update(topic)
            self._routes[topic] = now
        queues = [one for one in publish_info(message.topic, route).queues if one.broker_name != own]
        if not queues:
            remark = (
                f"no other broker takes messages of topic {message.topic}: create it there (mqadmin updateTopic -c)"
            )
            raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, remark)
        self._turn += 1
        return queues[self._turn % len(queues)]

    def _request(self, message: InnerMessage, queue: MessageQueue) -> RemotingCommand:
        options = self.broker.options
        group = message.property_map.get(PROPERTY_PRODUCER_GROUP) or (
            f"InnerProducerGroup_{options.broker_name}_{options.broker_id}"
        )
        header = SendMessageRequestHeaderV2(
            producer_group=group,
            topic=message.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=DEFAULT_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=message.born_timestamp,
            flag=message.flag,
            properties=encode_properties(message.property_map),
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            batch=False,
            broker_name=queue.broker_name,
        )
        return RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, encode_header(header), bytes(message.body))


def escaped(message: InnerMessage) -> InnerMessage:
    """Return the message as another master is to take it.

    due          without its delay: it has waited
    timed        for its own topic and its own time: the other master's timer goes on
    prepared     as its producer sent it: the other master asks the producer
    """
    properties = dict(message.property_map)
    topic, queue_id, sys_flag = message.topic, message.queue_id, message.sys_flag
    properties[PROPERTY_WAIT_STORE_MSG_OK] = "true"
    if topic in (TIMER_TOPIC, HALF_TOPIC):
        topic = properties.pop(PROPERTY_REAL_TOPIC)
        queue_id = parse_int(properties.pop(PROPERTY_REAL_QUEUE_ID, None)) or 0
    if message.topic == TIMER_TOPIC:
        properties[PROPERTY_TIMER_DELIVER_MS] = properties.pop(PROPERTY_TIMER_OUT_MS)
    elif message.topic == HALF_TOPIC:
        properties[PROPERTY_TRANSACTION_PREPARED] = "true"
        properties.pop(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET, None)
        sys_flag |= MessageSysFlag.TRANSACTION_PREPARED_TYPE
    else:
        properties.pop(PROPERTY_DELAY_TIME_LEVEL, None)
    return attrs.evolve(message, topic=topic, queue_id=queue_id, sys_flag=sys_flag, property_map=properties)


_CHANGING = (PROPERTY_TIMER_ENQUEUE_MS, PROPERTY_TIMER_DEQUEUE_MS)
"""Properties of a copy that are new at each attempt."""


def _key(message: InnerMessage) -> Key:
    """Equal for a message at each attempt. Two that are equal in all of this are sent one after the other."""
    properties = {name: value for name, value in message.property_map.items() if name not in _CHANGING}
    place = message.topic, message.queue_id, message.born_timestamp, message.reconsume_times
    return (*place, bytes(message.body), tuple(sorted(properties.items())))
