"""Administration in plain calls.

with Admin("127.0.0.1:9876") as admin:
    admin.create_topic("Orders", queues=4)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from twisted_mq.admin import faces
from twisted_mq.blocking.mq_client import ClientMember, MQClient


class Admin(faces.Admin[MQClient], ClientMember, faces.Plain):
    """Queries and changes the servers of one cluster. Calls may come from any thread.

    All methods raise NameServerUnreachable (no name server answers), BrokerError (a broker refuses), RemotingError (a
    broker does not answer within 5 s) and ClientStateError (before `start`, after `stop`). Each names its further errors.
    """

    @staticmethod
    def _made(method: faces.Method[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Admin, /, *args: Any, **options: Any) -> Any:
            return self._call(lambda: method(self._core, *args, **options))

        return call
