"""The base classes of all consumers in plain calls."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

from twisted_mq.blocking.mq_client import ClientMember, MQClient
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.faces import consumers
from twisted_mq.protocol.messages.message import MessageExt

MessageT = TypeVar("MessageT", bound=MessageExt)


class Iterates(consumers.Iterates[MQClient], ClientMember, Generic[MessageT]):
    """A consumer whose messages are iterated by `for`. The iteration ends when the consumer stops."""

    _stopper = threading.main_thread()

    @abc.abstractmethod
    def messages(self, timeout: float | None = None) -> Iterator[MessageT]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`."""

    def __iter__(self) -> Iterator[MessageT]:
        return self.messages()

    def stop(self, finish_seconds: float | None = None) -> None:
        self._stopper = threading.current_thread()
        super().stop(finish_seconds)

    stop.__doc__ = ClientMember.stop.__doc__

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = kind is not None and issubclass(kind, Exception)
        self.stop()

    def _check_begun(self) -> None:
        if self._thread is None:
            raise ClientStateError("this consumer is not running; use `with` or start() first")


class Consumer(consumers.Consumer[MQClient], Iterates[MessageT]):
    """A member of a consumer group."""
