"""The methods of Admin, from which each face makes its own: coroutines for asyncio, or plain calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from twisted.internet import defer

from twisted_mq.admin import admin
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.faces.member import ClientMember, MQClientT

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[admin.Admin, P], defer.Deferred[R]]


class Awaited:
    """A face whose methods are coroutines."""


class Plain:
    """A face whose methods wait for their results."""


class Asked(Generic[P, R]):
    """A method of the core. A face's class has a function in its place, which its `_made` returns."""

    def __init__(self, method: Method[P, R]) -> None:
        self.method = method

    if TYPE_CHECKING:

        @overload
        def __get__(self, face: Awaited, kind: object) -> Callable[P, Coroutine[Any, Any, R]]: ...
        @overload
        def __get__(self, face: Plain, kind: object) -> Callable[P, R]: ...
        @overload
        def __get__(self, face: None, kind: object) -> Callable[..., Any]: ...
        def __get__(self, face: object, kind: object) -> Any: ...


class Admin(ClientMember[MQClientT]):
    """Queries and changes the servers of one cluster."""

    _core: admin.Admin

    def __init_subclass__(cls) -> None:
        for name, asked in vars(Admin).items():
            if isinstance(asked, Asked):
                setattr(cls, name, cls._made(asked.method))

    def __init__(self, namesrv: str | Sequence[str] | None = None, *, options: ClientOptions | None = None) -> None:
        """Take the name servers' addresses; None reads them from NAMESRV_ADDR. Raises ClientOptionIllegal for a bad address."""
        super().__init__(None)
        self._core = admin.Admin(self._reactor, namesrv, options=options)

    @staticmethod
    def _made(method: Method[..., Any]) -> Callable[..., Any]:
        """Return the face's form of a method of the core."""
        raise NotImplementedError

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        return self._core.stop()

    create_topic = Asked(admin.Admin.create_topic)
    alter_topic = Asked(admin.Admin.alter_topic)
    delete_topic = Asked(admin.Admin.delete_topic)
    describe_topic = Asked(admin.Admin.describe_topic)
    list_topics = Asked(admin.Admin.list_topics)
    create_group = Asked(admin.Admin.create_group)
    delete_group = Asked(admin.Admin.delete_group)
    list_groups = Asked(admin.Admin.list_groups)
    describe_group = Asked(admin.Admin.describe_group)
    lag = Asked(admin.Admin.lag)
    reset_offsets = Asked(admin.Admin.reset_offsets)
    copy_offsets = Asked(admin.Admin.copy_offsets)
    messages = Asked(admin.Admin.messages)
    dead_letter_groups = Asked(admin.Admin.dead_letter_groups)
    dead_letters = Asked(admin.Admin.dead_letters)
    resend_dead_letters = Asked(admin.Admin.resend_dead_letters)
    export_dead_letters = Asked(admin.Admin.export_dead_letters)
    list_clusters = Asked(admin.Admin.list_clusters)
    list_brokers = Asked(admin.Admin.list_brokers)
    broker_settings = Asked(admin.Admin.broker_settings)
    create_user = Asked(admin.Admin.create_user)
    delete_user = Asked(admin.Admin.delete_user)
    list_users = Asked(admin.Admin.list_users)
    grant = Asked(admin.Admin.grant)
    revoke = Asked(admin.Admin.revoke)
    list_rights = Asked(admin.Admin.list_rights)
