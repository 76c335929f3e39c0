"""Keeps the users of cluster mode: their secrets, which the brokers know, and the signatures of requests.

The proxy checks the signatures of its clients, and signs their requests again with the same user's secret. So the brokers decide
what a user may do, as for remoting clients. Policies with source addresses see the address of the proxy. Routes and settings are
no requests to brokers: the proxy checks these by the user's policies, which the brokers know too, with the client's own address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.internet import defer, interfaces

from twisted_mq.access.accounts import DISABLED, SUPER, subject_of
from twisted_mq.access.policies import NO_POLICIES, Policies, parse_policies
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import AclInfo, UserInfo, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetAclRequestHeader, GetUserRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, Credentials, sign
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.fresh import Fresh
from twisted_mq.proxy.requests import make_request
from twisted_mq.proxy.rights import WantedRights
from twisted_mq.proxy.statuses import ProxyError

MOST_CHARACTERS = 256
"""The limit of a user's name. Longer names are unknown users, and no broker is asked about them."""

Ask = Callable[[RemotingCommand], defer.Deferred[RemotingCommand]]


class Signatures:
    """Signs requests: those of users with their secrets, all others with the proxy's own credentials."""

    log = Logger()

    def __init__(self, own: Credentials, clock: interfaces.IReactorTime, *, authorizes: bool = False) -> None:
        """`authorizes` is whether `permit` checks anything."""
        self._own = own
        self._authorizes = authorizes
        self._users: Fresh[UserInfo | None] = Fresh(clock)
        self._policies: Fresh[Policies] = Fresh(clock)
        self.ask: Ask = lambda command: defer.fail(RuntimeError("not connected to brokers"))
        """Sends a request to any broker."""

    def secret_of(self, name: str) -> defer.Deferred[str | None]:
        """Return a user's secret; None for an unknown or disabled user. Fails with RocketMQError if no broker answers."""
        return self._user(name).addCallback(lambda user: None if user is None else user.password)

    def _user(self, name: str) -> defer.Deferred[UserInfo | None]:
        """Return a user; None for an unknown or disabled one."""
        if not name or len(name) > MOST_CHARACTERS:
            return defer.succeed(None)
        return self._users.get(name, lambda: defer.ensureDeferred(self._ask_for_user(name)))

    async def _ask_for_user(self, name: str) -> UserInfo | None:
        header = GetUserRequestHeader(username=name)
        answer = await self._asked(make_request(RequestCode.AUTH_GET_USER, header))
        if not answer.body:
            return None
        user = decode_body(UserInfo, answer.body)
        if user.password is None:
            self.log.error(
                "broker does not return the secret of user {name}: innerClientAuthenticationCredentials of proxy and brokers "
                "must be equal",
                name=name,
            )
        return None if user.user_status == DISABLED else user

    async def _ask_for_policies(self, name: str) -> Policies:
        header = GetAclRequestHeader(subject=subject_of(name))
        answer = await self._asked(make_request(RequestCode.AUTH_GET_ACL, header))
        return parse_policies(decode_body(AclInfo, answer.body)) if answer.body else NO_POLICIES

    async def _asked(self, command: RemotingCommand) -> RemotingCommand:
        answer = await self.ask(command)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        return answer

    async def permit(self, client: GrpcClient, wanted: Iterable[WantedRights]) -> None:
        """Raise ProxyError unless the client's user has these rights; RocketMQError if no broker answers."""
        if not self._authorizes:
            return
        name = client.access_key or ""
        user = await self._user(name)
        if user is None:
            raise ProxyError("UNAUTHORIZED", f"User:{name} not found.")
        if user.user_type == SUPER:
            return
        policies = await self._policies.get(name, lambda: defer.ensureDeferred(self._ask_for_policies(name)))
        for resource, actions in wanted:
            refusal = policies.refusal(name, resource, actions, client.remote_address[0])
            if refusal is not None:
                raise ProxyError("UNAUTHORIZED", refusal.remark)

    def sign_as(self, name: str, command: RemotingCommand) -> None:
        """Sign a request of a user whose secret was asked for not long ago. An unknown user's request has a wrong signature."""
        user = self._users.peek(name)
        sign(command, Credentials(name, "" if user is None else user.password or ""))

    def complete(self, command: RemotingCommand) -> None:
        """Sign a request of the proxy itself. A request of a user has its signature already."""
        if ACCESS_KEY not in command.ext_fields:
            sign(command, self._own)
