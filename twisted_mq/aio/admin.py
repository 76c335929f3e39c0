"""Administration for asyncio.

async with Admin("127.0.0.1:9876") as admin:
    await admin.create_topic("Orders", queues=4)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any

from twisted_mq.admin import faces
from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.mq_client import ClientMember, MQClient


class Admin(faces.Admin[MQClient], ClientMember, faces.Awaited):
    """Queries and changes the servers of one cluster, from the running event loop.

    All methods raise NameServerUnreachable (no name server answers), BrokerError (a broker refuses), RemotingError (a
    broker does not answer within 5 s) and ClientStateError (before `start`, after `stop`). Each names its further errors.
    """

    @staticmethod
    def _made(method: faces.Method[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
        @functools.wraps(method)
        async def call(self: Admin, /, *args: Any, **options: Any) -> Any:
            loop = self._reactor.check_loop()
            return await result_of(method(self._core, *args, **options), loop)

        return call
