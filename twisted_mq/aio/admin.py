"""Administration for asyncio.

async with Admin("127.0.0.1:9876") as admin:
    await admin.create_topic("Orders", queues=4)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from twisted.internet import defer

from twisted_mq.admin import admin
from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.mq_client import ClientMember
from twisted_mq.client.core.client_options import ClientOptions

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[admin.Admin, P], defer.Deferred[R]],
) -> Callable[Concatenate[Admin, P], Coroutine[Any, Any, R]]:
    """Turn a method of the core into a coroutine method."""

    @functools.wraps(method)
    async def call(self: Admin, /, *args: P.args, **options: P.kwargs) -> R:
        loop = self._reactor.check_loop()
        return await result_of(method(self._core, *args, **options), loop)

    return call


class Admin(ClientMember):
    """Queries and changes the servers of one cluster, from the running event loop.

    All methods raise NameServerUnreachable (no name server answers), BrokerError (a broker refuses), RemotingError (a
    broker does not answer within 5 s) and ClientStateError (before `start`, after `stop`). Each names its further errors.
    """

    _core: admin.Admin

    def __init__(self, namesrv: str | Sequence[str] | None = None, *, options: ClientOptions | None = None) -> None:
        """Take the name servers' addresses; None reads them from NAMESRV_ADDR. Raises ClientOptionIllegal for a bad address."""
        super().__init__(None)
        self._core = admin.Admin(self._reactor, namesrv, options=options)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        return self._core.stop()

    create_topic = _awaited(admin.Admin.create_topic)
    alter_topic = _awaited(admin.Admin.alter_topic)
    delete_topic = _awaited(admin.Admin.delete_topic)
    describe_topic = _awaited(admin.Admin.describe_topic)
    list_topics = _awaited(admin.Admin.list_topics)
    create_group = _awaited(admin.Admin.create_group)
    delete_group = _awaited(admin.Admin.delete_group)
    list_groups = _awaited(admin.Admin.list_groups)
    describe_group = _awaited(admin.Admin.describe_group)
    lag = _awaited(admin.Admin.lag)
    reset_offsets = _awaited(admin.Admin.reset_offsets)
    copy_offsets = _awaited(admin.Admin.copy_offsets)
    messages = _awaited(admin.Admin.messages)
    dead_letter_groups = _awaited(admin.Admin.dead_letter_groups)
    dead_letters = _awaited(admin.Admin.dead_letters)
    resend_dead_letters = _awaited(admin.Admin.resend_dead_letters)
    export_dead_letters = _awaited(admin.Admin.export_dead_letters)
    list_clusters = _awaited(admin.Admin.list_clusters)
    list_brokers = _awaited(admin.Admin.list_brokers)
    broker_settings = _awaited(admin.Admin.broker_settings)
    create_user = _awaited(admin.Admin.create_user)
    delete_user = _awaited(admin.Admin.delete_user)
    list_users = _awaited(admin.Admin.list_users)
    grant = _awaited(admin.Admin.grant)
    revoke = _awaited(admin.Admin.revoke)
    list_rights = _awaited(admin.Admin.list_rights)
