"""Logs users in: with a token that the console printed, or with an access key of the cluster. A user who switches to another
cluster logs in there with the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from twisted_mq.admin.calls import AdminCalls, select_address
from twisted_mq.console.forms import said
from twisted_mq.console.sessions import Attempts, ConsoleSessions, OneTimeToken, Role, Session
from twisted_mq.console.settings import ConsoleSettings, NamedCluster
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.signature import Credentials

MakeAdmin = Callable[[Credentials | None, NamedCluster], AdminCalls]


class LoginRefused(Exception):
    """Raised when a login is refused; the text says why."""


class Login:
    """Creates sessions for users who log in."""

    def __init__(
        self,
        settings: ConsoleSettings,
        sessions: ConsoleSessions,
        token: OneTimeToken,
        attempts: Attempts,
        make_admin: MakeAdmin,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._token = token
        self._attempts = attempts
        self._make_admin = make_admin

    async def by_token(self, given: str, host: str) -> Session:
        """Log in with the token, however many attempts failed: the token cannot be guessed. Raises Refused."""
        if self._settings.accounts or not self._token.take(given):
            self._check_attempts(host)
            self._attempts.failed(host)
            raise LoginRefused(
                "This token is not valid. A token works once: use the last one that the console printed."
            )
        admin = self._make_admin(self._settings.client_options.credentials, self._first)
        return self._sessions.begin("token", self._role(Role.OPERATOR), admin, self._first.name)

    async def by_account(self, access_key: str, secret_key: str, host: str, *, read_only: bool) -> Session:
        """Log in with an access key. Raises Refused, and the errors of requests."""
        self._check_attempts(host)
        if not self._settings.accounts or not access_key or not secret_key:
            self._attempts.failed(host)
            raise LoginRefused("Enter the access key and the secret key of an account of this cluster.")
        admin = self._make_admin(Credentials(access_key, secret_key), self._first)
        try:
            role = await self._role_of(admin, self._first)
        except BaseException:
            self._attempts.failed(host)
            admin.client.close()
            raise
        most = Role.READER if read_only else Role.OPERATOR
        return self._sessions.begin(access_key, self._role(role), admin, self._first.name, most)

    async def switch(self, session: Session, name: str) -> None:
        """Show another cluster. Raises Refused, and the errors of requests; then the session shows the same as before."""
        cluster = self._settings.clusters.get(name)
        if cluster is None:
            raise LoginRefused(f"The console has no cluster {name!r}.")
        if self._sessions.show(session, name):
            return
        admin = self._make_admin(session.admin.credentials, cluster)
        try:
            role = await self._role_of(admin, cluster) if self._settings.accounts else Role.OPERATOR
        except BaseException:
            admin.client.close()
            raise
        self._sessions.add(session, name, self._role(role), admin)

    @property
    def _first(self) -> NamedCluster:
        return next(iter(self._settings.clusters.values()))

    def _check_attempts(self, host: str) -> None:
        wait_seconds = self._attempts.wait_seconds(host)
        if wait_seconds:
            raise LoginRefused(f"Too many attempts from {host} failed. Try again in {math.ceil(wait_seconds)} s.")

    def _role(self, wanted: Role) -> Role:
        return Role.READER if self._settings.read_only else wanted

    async def _role_of(self, admin: AdminCalls, cluster: NamedCluster) -> Role:
        """Return the role that a broker gives an account. Raises Refused if the broker does not know it, or does not
        authenticate.
        """
        address = await self._broker(admin)
        if not await self._asks_who(address, cluster):
            raise LoginRefused("The brokers have no accounts. Start the console without --accounts.")
        try:
            await admin.broker_runtime(address)
        except BrokerError as error:
            raise LoginRefused(f"The broker refuses this account: {said(error)}") from None
        return Role.OPERATOR if await may_change(admin, address) else Role.READER

    async def _broker(self, admin: AdminCalls) -> str:
        brokers = (await admin.cluster_info()).broker_addr_table or {}
        addresses = [address for _, data in sorted(brokers.items()) if (address := select_address(data.broker_addrs))]
        if not addresses:
            raise LoginRefused("No broker is running that can check this account.")
        return addresses[0]

    async def _asks_who(self, address: str, cluster: NamedCluster) -> bool:
        """Return True if a broker refuses unsigned requests."""
        stranger = self._make_admin(None, cluster)
        try:
            await stranger.broker_runtime(address)
        except BrokerError as error:
            return error.response_code == ResponseCode.NO_PERMISSION
        finally:
            stranger.client.close()
        return False


async def may_change(admin: AdminCalls, address: str) -> bool:
    """Return True if a broker would let this account change its settings: asked with an empty change."""
    try:
        await admin.invoke(address, RequestCode.UPDATE_BROKER_CONFIG)
    except BrokerError as error:
        return error.response_code != ResponseCode.NO_PERMISSION
    return True
