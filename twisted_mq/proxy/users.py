"""Keeps the users of cluster mode: their secrets, which the brokers know, and the signatures of requests.

The proxy checks the signatures of its clients, and signs their requests again with the same user's secret. So the brokers decide
what a user may do, as for remoting clients. Policies with source addresses see the address of the proxy.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import UserInfo, decode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetUserRequestHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, Credentials, sign
from twisted_mq.proxy.fresh import Fresh
from twisted_mq.proxy.requests import make_request

DISABLED = "disable"
MOST_CHARACTERS = 256
"""The limit of a user's name. Longer names are unknown users, and no broker is asked about them."""

Ask = Callable[[RemotingCommand], defer.Deferred[RemotingCommand]]


class Signatures:
    """Signs requests: those of users with their secrets, all others with the proxy's own credentials."""

    log = Logger()

    def __init__(self, own: Credentials, clock: interfaces.IReactorTime) -> None:
        self._own = own
        self._known: Fresh[str | None] = Fresh(clock)
        self.ask: Ask = lambda command: defer.fail(RuntimeError("not connected to brokers"))
        """Sends a request to any broker."""

    def secret_of(self, name: str) -> defer.Deferred[str | None]:
        """Return a user's secret; None for an unknown or disabled user. Fails with RocketMQError if no broker answers."""
        if not name or len(name) > MOST_CHARACTERS:
            return defer.succeed(None)
        return self._known.get(name, lambda: defer.ensureDeferred(self._secret_of(name)))

    async def _secret_of(self, name: str) -> str | None:
        header = GetUserRequestHeader(username=name)
        answer = await self.ask(make_request(RequestCode.AUTH_GET_USER, header))
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark or "")
        if not answer.body:
            return None
        user = decode_body(UserInfo, answer.body)
        if user.password is None:
            self.log.error(
                "broker does not tell the secret of user {name}: innerClientAuthenticationCredentials of proxy and brokers"
                " must be the same",
                name=name,
            )
        return None if user.user_status == DISABLED else user.password

    def sign_as(self, name: str, command: RemotingCommand) -> None:
        """Sign a request of a user whose secret was asked for not long ago. An unknown user's request has a wrong signature."""
        sign(command, Credentials(name, self._known.peek(name) or ""))

    def complete(self, command: RemotingCommand) -> None:
        """Sign a request of the proxy itself. A request of a user has its signature already."""
        if ACCESS_KEY not in command.ext_fields:
            sign(command, self._own)
