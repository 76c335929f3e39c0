"""The base classes of all consumers for asyncio."""

from __future__ import annotations

import abc
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Generic, TypeVar

from twisted_mq.aio.mq_client import ClientMember, MQClient
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.faces import consumers
from twisted_mq.protocol.messages.message import MessageExt

MessageT = TypeVar("MessageT", bound=MessageExt)


class Iterates(consumers.Iterates[MQClient], ClientMember, Generic[MessageT]):
    """A consumer whose messages are iterated by `async for`. The iteration ends when the consumer stops."""

    @abc.abstractmethod
    def messages(self, timeout: float | None = None) -> AsyncGenerator[MessageT, None]:
        """Iterate over messages as they arrive. Ends if none arrives for `timeout` seconds, or at `stop`."""

    def __aiter__(self) -> AsyncGenerator[MessageT, None]:
        return self.messages()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = kind is not None and issubclass(kind, Exception)
        await self.stop()

    def _check_begun(self) -> None:
        if not self._begun:
            raise ClientStateError("this consumer is not running; use `async with` or `await start()` first")


class Consumer(consumers.Consumer[MQClient], Iterates[MessageT]):
    """A member of a consumer group."""
