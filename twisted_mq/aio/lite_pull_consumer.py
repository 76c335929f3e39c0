"""A consumer that polls, for asyncio: it pulls messages ahead; `poll` returns them in batches, `async for` one by one.

async with LitePullConsumer("127.0.0.1:9876", group="report", topics={"Orders": "*"}) as consumer:
    for message in await consumer.poll():
        ...
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator

from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.consumer import Consumer
from twisted_mq.aio.mq_client import MQClient
from twisted_mq.aio.received import MESSAGES_A_TURN
from twisted_mq.client.core.times import Moment
from twisted_mq.client.faces import consumers
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

LONG_SECONDS = 3600.0
"""The poll timeout of an iteration without a timeout."""


class LitePullConsumer(consumers.LitePullConsumer[MQClient], Consumer[MessageExt]):
    """A consumer that returns messages when it is polled.

    A message that a poll or an iteration returned counts as consumed at the next poll or step, or at `stop`; but not if
    an exception leaves `async with`. Without `auto_commit` it counts as consumed only at `commit`. The broker retries
    nothing: to receive a message again, use `seek`.
    """

    # messages

    async def poll(self, timeout: float = 5.0, max_messages: int | None = None) -> list[MessageExt]:
        """Return the next messages of one queue, at most `max_messages` or pull_batch_size.

        Empty if none arrives within `timeout` seconds, or after `stop`. One poll waits at a time. A poll that is cancelled
        takes no messages.
        """
        loop = self._reactor.check_loop()
        self._check_begun()
        deadline = loop.time() + timeout
        messages = self._core.take(max_messages)
        while not messages and self._begun and loop.time() < deadline:
            await result_of(self._core.wait(deadline - loop.time()), loop)
            messages = self._core.take(max_messages) if self._begun else []
        return messages

    async def getmany(self, timeout: float = 5.0, max_messages: int = 500) -> dict[MessageQueue, list[MessageExt]]:
        """Return the next messages of all queues, by queue; wait for the first one.

        Empty if none arrives within `timeout` seconds, or after `stop`. They count as consumed like those of `poll`. A call
        that is cancelled takes no messages.
        """
        loop = self._reactor.check_loop()
        self._check_begun()
        deadline = loop.time() + timeout
        found = self._core.take_many(max_messages)
        while not found and self._begun and loop.time() < deadline:
            await result_of(self._core.wait(deadline - loop.time()), loop)
            found = self._core.take_many(max_messages) if self._begun else {}
        return found

    async def messages(self, timeout: float | None = None) -> AsyncGenerator[MessageExt, None]:
        """Iterate over messages one by one. Ends if none arrives for `timeout` seconds, or at `stop`."""
        self._check_begun()
        for turn in itertools.count(1):
            if turn % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)
            polled = await self.poll(LONG_SECONDS if timeout is None else timeout, 1)
            if polled:
                yield polled[0]
            elif timeout is not None or not self._begun:
                return

    # queues

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """Return all readable queues of a topic, to assign some of them. Raises NoRoute."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.fetch_queues(topic), loop)

    # offsets

    async def commit(self) -> None:
        """Commit the offsets after all polled messages to the broker."""
        loop = self._reactor.check_loop()
        await result_of(self._core.commit(), loop)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue from the queue's first message that is still kept."""
        loop = self._reactor.check_loop()
        await result_of(self._core.seek_to_begin(queue), loop)

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue after the queue's last message."""
        loop = self._reactor.check_loop()
        await result_of(self._core.seek_to_end(queue), loop)

    async def offset_for_time(self, queue: MessageQueue, time: Moment) -> int:
        """Return the offset of the first message stored at that time (a datetime or float seconds since 1970) or later."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.offset_for_time(queue, time), loop)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's offset at the broker; None if it has none."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.committed(queue), loop)
