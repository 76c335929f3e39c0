"""Values that `Admin` returns. Times are datetimes in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import attrs

from twisted_mq.admin.topics import TopicKind
from twisted_mq.protocol.bodies import MessageQueue


def moment_of(time_ms: int | None) -> datetime | None:
    """Return a time in ms since 1970 as a datetime in UTC; None for None and for 0, which brokers send for no time."""
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
    """A queue of a topic: it holds the offsets from `begin` to before `end`."""

    queue: MessageQueue
    begin: int
    end: int
    last_stored: datetime | None
    """When its last message was stored; None for an empty queue."""


@attrs.frozen
class TopicDescription:
    """A topic at all its brokers, in order of their names."""

    name: str
    kind: TopicKind
    settings: tuple[TopicSettings, ...]
    queues: tuple[TopicQueue, ...]

    @property
    def messages(self) -> int:
        """Messages in all queues together."""
        return sum(one.end - one.begin for one in self.queues)


@attrs.frozen
class GroupMember:
    """A consumer that is connected; `address` is host:port as the broker sees it."""

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
    """How often a message is tried again before it becomes a dead letter; None where no broker has settings of the group."""
    order: bool
    """Whether messages that failed wait in their queue (consumeMessageOrderly)."""


@attrs.frozen
class OffsetMove:
    """A move of a group in one queue. `before` is None where the group has no offset."""

    queue: MessageQueue
    before: int | None
    after: int
    stored: datetime | None
    """When the message at `after` was stored; None at the end of the queue."""
    again: int
    """Messages that the group has consumed and will receive once more."""
    skipped: int
    """Messages that the group will never receive."""


@attrs.frozen
class User:
    """An account of brokers. `kind` is Super or Normal, `status` is enable or disable."""

    name: str
    kind: str
    status: str


@attrs.frozen
class Right:
    """A rule: whether a subject, for example User:billing, may do `actions` on a resource, for example Topic:Orders."""

    subject: str
    resource: str
    actions: tuple[str, ...]
    source_ips: tuple[str, ...]
    """Addresses from which the rule counts; empty for all."""
    allowed: bool
