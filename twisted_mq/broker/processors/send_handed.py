"""Stores plain messages that this process's own proxy has read and checked: many at a time, as `send_columns` does.

Messages that it does not take go to the send processor as requests. A test checks that log and queues are equal both ways.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.broker.processors.send_columns import SendColumns, code_of_tags
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.remoting.channel import Channel
from twisted_mq.storage.interfaces import Places, PlainMessages, PutStatus

_PUT_OK = PutStatus.PUT_OK
_CODE = int(RequestCode.SEND_MESSAGE_V2)
"""The request that each of these messages would be."""


@attrs.frozen(eq=False)
class HandedSends:
    """Stores messages of one topic. Nothing is taken while requests are checked, or while sends wait for durability."""

    columns: SendColumns

    def put(
        self,
        channel: Channel,
        topic: str,
        queue_ids: Sequence[int],
        bodies: Sequence[bytes],
        properties: Sequence[bytes],
        tags: Sequence[str],
        born_timestamps: Sequence[int],
    ) -> Sequence[int]:
        """Store the first messages, up to one that the store has to check. Return the queue offset of each that was stored.

        `properties` are records' texts without those that the broker adds; each has UNIQ_KEY and none that is unusual. `tags`
        are empty for messages without. Bodies are not empty.
        """
        columns, broker = self.columns, self.columns.broker
        target = columns.checks.targets.get(topic)
        if (
            target is None
            or target.is_special
            or target.batch_queues
            or not columns.may_take
            or columns.guard.checks
            or broker.durability.waits
            or max(queue_ids) >= target.queue_limit
        ):
            return ()
        times = broker.statistics.request_times
        began = 0.0 if times is None else times.seconds()
        suffix, sys_flag = columns.suffix.encode(), 2 if target.multi_tag else 0
        messages = PlainMessages(
            topic,
            queue_ids,
            bodies,
            (properties, suffix),
            [code_of_tags(one.encode()) if one else 0 for one in tags],
            born_timestamps,
            channel.packed_address,
            0,
            sys_flag,
            0,
        )
        places = broker.timed_plain_puts.call(messages) if len(messages) > 1 else self._put_one(messages)
        count = len(places)
        if count:
            columns.count(messages, places)
            if times is not None:
                times.note_together(_CODE, count, began)
        return places.queue_offsets

    def _put_one(self, messages: PlainMessages) -> Places:
        """Store a single message, for which columns cost twice as much."""
        [message] = messages.each()
        result = self.columns.broker.timed_put.call(message)
        if result.status is not _PUT_OK:
            return Places()
        size = result.end_offset - result.physical_offset
        place, queues = (result.queue_offset,), dict.fromkeys(messages.queues, (1, size))
        return Places(place, (result.physical_offset,), (size,), result.end_offset, queues)
