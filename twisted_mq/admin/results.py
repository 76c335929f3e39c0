"""The values that `Admin` returns. Times are datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import attrs

from twisted_mq.admin.topics import TopicKind
from twisted_mq.protocol.bodies import MessageQueue


def moment_of(time_ms: int | None) -> datetime | None:
    """Return a time in ms since 1970 as a datetime in UTC; None for None and for 0, which brokers send without a time."""
    return None if not time_ms or time_ms < 0 else datetime.fromtimestamp(time_ms / 1000, UTC)


@attrs.frozen
class TopicSettings:
    """The settings of a topic at one broker."""

    broker: str
    read_queues: int
    write_queues: int
    readable: bool
    writable: bool
    order: bool
    attributes: Mapping[str, str]


@attrs.frozen
class TopicQueue:
    """A queue of a topic. It holds the offsets from `begin` to before `end`."""

    queue: MessageQueue
    begin: int
    end: int
    last_stored: datetime | None
    """The time when its last message was stored; None for an empty queue."""


@attrs.frozen
class TopicDescription:
    """A topic at all its brokers, sorted by broker name."""

    name: str
    kind: TopicKind
    settings: tuple[TopicSettings, ...]
    queues: tuple[TopicQueue, ...]

    @property
    def messages(self) -> int:
        """The number of messages in all queues."""
        return sum(one.end - one.begin for one in self.queues)


@attrs.frozen
class GroupMember:
    """A connected consumer. `address` is its host:port as the broker sees it."""

    client_id: str
    address: str
    language: str


@attrs.frozen
class GroupDescription:
    """A consumer group. Without members, `subscriptions` is empty and `message_model` is None."""

    name: str
    members: tuple[GroupMember, ...]
    subscriptions: Mapping[str, str]
    """Topic -> expression, for example {"Orders": "TagA || TagB"}."""
    message_model: str | None
    """CLUSTERING or BROADCASTING."""
    retry_max_times: int | None
    """The number of retries before a message becomes a dead letter; None if no broker has settings of the group."""
    order: bool
    """True if failed messages wait in their queue (consumeMessageOrderly)."""


@attrs.frozen
class OffsetMove:
    """A move of a group in one queue. `before` is None if the group has no offset."""

    queue: MessageQueue
    before: int | None
    after: int
    stored: datetime | None
    """The time when the message at `after` was stored; None at the end of the queue."""
    again: int
    """The number of consumed messages that the group will receive again."""
    skipped: int
    """The number of messages that the group will never receive."""


@attrs.frozen
class User:
    """An account of brokers. `kind` is Super or Normal, `status` is enable or disable."""

    name: str
    kind: str
    status: str


@attrs.frozen
class Right:
    """A rule that allows or denies a subject (for example User:billing) actions on a resource (for example Topic:Orders)."""

    subject: str
    resource: str
    actions: tuple[str, ...]
    source_ips: tuple[str, ...]
    """The client addresses to which the rule applies; empty for all."""
    allowed: bool
