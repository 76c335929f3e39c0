"""Rules for accepting messages (Apache: HookUtils.checkBeforePutMessage, MessageExtEncoder, CommitLog.asyncPutMessages)."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.protocol.flags import INNER_BATCH, OUT_OF_QUEUES, transaction_value
from twisted_mq.protocol.layouts.queue_entry import MAX_BATCH_NUM
from twisted_mq.protocol.messages.delay_levels import delivery_time, parse_delay_levels
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.text.java import from_utf8, parse_int, utf8
from twisted_mq.protocol.text.properties import (
    MAX_PROPERTIES_BYTES,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_BASE,
    PROPERTY_INNER_NUM,
    PROPERTY_SEPARATOR,
    delete_property,
)
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.paths import HIGHEST_QUEUE_ID, is_topic_name
from twisted_mq.storage.interfaces import InnerBatch, InnerMessage, PutStatus

LONGEST_TOPIC = 127
"""Only retry topics may be longer, up to 255."""


def inner_number(message: InnerMessage) -> int | None:
    """Return how many messages a record of a batch queue holds; None if flags and INNER_NUM do not agree on it.

    Apache: DefaultMessageStore.asyncPutMessage, CommitLog.getMessageNum.
    """
    text = message.property_map.get(PROPERTY_INNER_NUM)
    if not message.sys_flag & INNER_BATCH:
        return 1 if text is None else None
    number = parse_int(text) if text is not None else 1
    legal = number is not None and 1 <= number <= MAX_BATCH_NUM and not message.sys_flag & OUT_OF_QUEUES
    return number if legal else None


def based(message: InnerMessage, queue_offset: int) -> bytes:
    """Return a message's properties for a batch queue. Those of an inner batch include its first queue offset."""
    if not message.sys_flag & INNER_BATCH:
        return message.properties
    text = delete_property(from_utf8(message.properties), PROPERTY_INNER_BASE)
    end = "" if not text or text.endswith(PROPERTY_SEPARATOR) else PROPERTY_SEPARATOR
    return utf8(f"{text}{end}{PROPERTY_INNER_BASE}\x01{queue_offset}\x02")


class Admission:
    """The admission rules of one configuration."""

    def __init__(self, config: StoreConfig) -> None:
        self.delay_table = parse_delay_levels(config.message_delay_level)
        self.configure(config)

    def configure(self, config: StoreConfig) -> None:
        """Take over the limits of messages."""
        self._max_body = config.max_message_size

    def verdict(self, messages: Sequence[InnerMessage]) -> PutStatus | None:
        """Return the status that refuses messages of these sizes; None if the sizes are allowed."""
        for message in messages:
            if len(message.properties) > MAX_PROPERTIES_BYTES:
                return PutStatus.PROPERTIES_SIZE_EXCEEDED
            if len(message.body) > self._max_body:
                return PutStatus.MESSAGE_ILLEGAL
        return None

    def verdict_on_batch(self, batch: InnerBatch) -> PutStatus | None:
        """Return the status that refuses a batch, else None.

        A batch is refused if it is empty, contains a transaction, a delay or other batches, or is too large as a whole.
        """
        shared = batch.shared
        if not len(batch) or self._delay_level(shared) > 0 or shared.sys_flag & INNER_BATCH:
            return PutStatus.MESSAGE_ILLEGAL
        alike, count = batch.alike, len(batch)
        longest = len(batch.properties[0]) if alike else max(map(len, batch.properties))
        if longest + len(batch.suffix) > MAX_PROPERTIES_BYTES:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        body_bytes = count * len(batch.bodies[0]) if alike else sum(map(len, batch.bodies))
        too_large = body_bytes > self._max_body
        if too_large or transaction_value(shared.sys_flag) or shared.prepared_transaction_offset:
            return PutStatus.MESSAGE_ILLEGAL
        return None if self.may_have_queue(shared.topic, shared.queue_id) else PutStatus.MESSAGE_ILLEGAL

    def may_have_queue(self, topic: str, queue_id: int) -> bool:
        """Return whether a queue of this name may be created."""
        short = len(topic) <= LONGEST_TOPIC or topic.startswith(RETRY_PREFIX)
        return short and is_topic_name(topic) and 0 <= queue_id <= HIGHEST_QUEUE_ID

    def due_time(self, message: InnerMessage, store_timestamp: int) -> int:
        """Return a message's tags code; in the schedule topic a message with a delay level has its due time in ms."""
        level = self._delay_level(message)
        return self.time_of_level(level, store_timestamp) if level > 0 else message.tags_code

    def time_of_level(self, level: int, store_timestamp: int) -> int:
        """Return when a message of a delay level is due, in ms."""
        return delivery_time(level, store_timestamp, self.delay_table)

    def _delay_level(self, message: InnerMessage) -> int:
        return parse_int(message.property_map.get(PROPERTY_DELAY_TIME_LEVEL)) or 0
