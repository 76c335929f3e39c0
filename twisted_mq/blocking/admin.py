"""Administration in plain calls.

with Admin("127.0.0.1:9876") as admin:
    admin.create_topic("Orders", queues=4)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from twisted.internet import defer

from twisted_mq.admin import admin
from twisted_mq.blocking.mq_client import ClientMember
from twisted_mq.client.core.client_options import ClientOptions

P = ParamSpec("P")
R = TypeVar("R")


def _plain(
    method: Callable[Concatenate[admin.Admin, P], defer.Deferred[R]],
) -> Callable[Concatenate[Admin, P], R]:
    """Turn a method of the core into a plain call."""

    @functools.wraps(method)
    def call(self: Admin, /, *args: P.args, **options: P.kwargs) -> R:
        return self._call(lambda: method(self._core, *args, **options))

    return call


class Admin(ClientMember):
    """Queries and changes the servers of one cluster. Calls may come from any thread.

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

    create_topic = _plain(admin.Admin.create_topic)
    alter_topic = _plain(admin.Admin.alter_topic)
    delete_topic = _plain(admin.Admin.delete_topic)
    describe_topic = _plain(admin.Admin.describe_topic)
    list_topics = _plain(admin.Admin.list_topics)
    create_group = _plain(admin.Admin.create_group)
    delete_group = _plain(admin.Admin.delete_group)
    list_groups = _plain(admin.Admin.list_groups)
    describe_group = _plain(admin.Admin.describe_group)
    lag = _plain(admin.Admin.lag)
    reset_offsets = _plain(admin.Admin.reset_offsets)
    copy_offsets = _plain(admin.Admin.copy_offsets)
    messages = _plain(admin.Admin.messages)
    dead_letter_groups = _plain(admin.Admin.dead_letter_groups)
    dead_letters = _plain(admin.Admin.dead_letters)
    resend_dead_letters = _plain(admin.Admin.resend_dead_letters)
    export_dead_letters = _plain(admin.Admin.export_dead_letters)
    list_clusters = _plain(admin.Admin.list_clusters)
    list_brokers = _plain(admin.Admin.list_brokers)
    broker_settings = _plain(admin.Admin.broker_settings)
    create_user = _plain(admin.Admin.create_user)
    delete_user = _plain(admin.Admin.delete_user)
    list_users = _plain(admin.Admin.list_users)
    grant = _plain(admin.Admin.grant)
    revoke = _plain(admin.Admin.revoke)
    list_rights = _plain(admin.Admin.list_rights)
