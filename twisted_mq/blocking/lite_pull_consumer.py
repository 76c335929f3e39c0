"""A consumer that polls, in plain calls: it pulls messages ahead; `poll` returns them in batches, `for` one by one.

with LitePullConsumer("127.0.0.1:9876", group="report", topics={"Orders": "*"}) as consumer:
    for message in consumer.poll():
        ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from twisted_mq.blocking.consumer import Consumer
from twisted_mq.blocking.mq_client import MQClient
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.times import Moment
from twisted_mq.client.faces import consumers
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

LONG_SECONDS = 3600.0
"""The poll timeout of an iteration without a timeout."""


class LitePullConsumer(consumers.LitePullConsumer[MQClient], Consumer[MessageExt]):
    """A consumer that returns messages when it is polled.

    A message that a poll or an iteration returned counts as consumed at the next poll or step, or at `stop`; but not if
    an exception leaves `with`. Without `auto_commit` it counts as consumed only at `commit`. The broker retries
    nothing: to receive a message again, use `seek`.
    """

    # messages

    def poll(self, timeout: float = 5.0, max_messages: int | None = None) -> list[MessageExt]:
        """Return the next messages of one queue, at most `max_messages` or pull_batch_size.

        Empty if none arrives within `timeout` seconds, or after `stop`. One poll waits at a time.
        """
        return self._call(lambda: self._core.poll(timeout, max_messages))

    def getmany(self, timeout: float = 5.0, max_messages: int = 500) -> dict[MessageQueue, list[MessageExt]]:
        """Return the next messages of all queues, by queue; wait for the first one.

        Empty if none arrives within `timeout` seconds, or after `stop`. They count as consumed like those of `poll`.
        """
        return self._call(lambda: self._core.getmany(timeout, max_messages))

    def messages(self, timeout: float | None = None) -> Iterator[MessageExt]:
        """Iterate over messages one by one. Ends if none arrives for `timeout` seconds, or at `stop`."""
        self._check_begun()
        seconds = LONG_SECONDS if timeout is None else timeout
        while self._thread is not None:
            pulled = self._call(lambda: self._core.poll_ahead(seconds))
            if pulled is not None:
                yield from self._one_by_one(*pulled)
            elif timeout is not None:
                return

    def _one_by_one(
        self, pulled: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue
    ) -> Iterator[MessageExt]:
        """Yield messages of one pull while the queue is assigned to this consumer; put back those that are left."""
        handed_out = 0
        try:
            for named, message in zip(self._core.named(pulled), pulled, strict=True):
                if process_queue.dropped or self._thread is None:
                    return
                self._act()(self._core.handed_out, message, process_queue, queue)
                handed_out += 1
                yield named
        finally:
            thread = self._thread
            if handed_out < len(pulled) and thread is not None and thread.is_ours:
                with contextlib.suppress(ClientStateError):  # it was stopped meanwhile
                    thread.soon(self._core.put_back, (pulled[handed_out:], process_queue, queue))

    # queues

    def fetch_queues(self, topic: str, *, timeout: float | None = None) -> list[MessageQueue]:
        """Return all readable queues of a topic, to assign some of them. Raises NoRoute."""
        return self._call(lambda: self._core.fetch_queues(topic), timeout)

    # offsets

    def commit(self, *, timeout: float | None = None) -> None:
        """Commit the offsets after all polled messages to the broker."""
        self._call(lambda: self._core.commit(), timeout)

    def seek_to_begin(self, queue: MessageQueue, *, timeout: float | None = None) -> None:
        """Continue from the queue's first message that is still kept."""
        self._call(lambda: self._core.seek_to_begin(queue), timeout)

    def seek_to_end(self, queue: MessageQueue, *, timeout: float | None = None) -> None:
        """Continue after the queue's last message."""
        self._call(lambda: self._core.seek_to_end(queue), timeout)

    def offset_for_time(self, queue: MessageQueue, time: Moment, *, timeout: float | None = None) -> int:
        """Return the offset of the first message stored at that time (a datetime or float seconds since 1970) or later."""
        return self._call(lambda: self._core.offset_for_time(queue, time), timeout)

    def committed(self, queue: MessageQueue, *, timeout: float | None = None) -> int | None:
        """Return the group's offset at the broker; None if it has none."""
        return self._call(lambda: self._core.committed(queue), timeout)
