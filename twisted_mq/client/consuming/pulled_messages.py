"""Messages that were pulled ahead and wait for a poll."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TypeVar

from twisted.internet import defer

from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

Result = TypeVar("Result")


Pulled = tuple[Sequence[MessageExt], ProcessQueue, MessageQueue]
"""The rest of a pull: its messages, their process queue and queue."""


class PulledMessages:
    """Messages that were pulled and not yet polled, in the order they came. One poll waits at a time."""

    def __init__(self) -> None:
        self._pulled: collections.deque[Pulled] = collections.deque()
        self._waiting: defer.Deferred[None] | None = None

    def submit(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self._pulled.append((messages, process_queue, queue))
        self._wake()

    def take(self, most: int | None = None) -> Pulled | None:
        """Return the messages of the earliest pull, of a queue that is still assigned; None if there is no such pull.

        Messages past `most` stay, and come next.
        """
        while self._pulled:
            messages, process_queue, queue = self._pulled.popleft()
            if process_queue.dropped:
                continue
            if most is not None and len(messages) > most:
                self._pulled.appendleft((messages[most:], process_queue, queue))
                messages = messages[:most]
            return messages, process_queue, queue
        return None

    def put_back(self, pulled: Pulled) -> None:
        """Put the rest of a pull back; it comes next."""
        self._pulled.appendleft(pulled)
        self._wake()

    def wait(self) -> defer.Deferred[None]:
        """Fires when there may be something to take. Raises ClientStateError while another poll waits."""
        if self._waiting is not None:
            raise ClientStateError("another poll() of this consumer is waiting; call them one at a time")
        self._waiting = defer.Deferred()
        return self._waiting.addBoth(self._waited)

    def _waited(self, result: Result) -> Result:
        self._waiting = None
        return result

    async def stop(self, finish_seconds: float) -> None:
        """End a poll that waits, without messages."""
        self._pulled.clear()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.callback(None)
