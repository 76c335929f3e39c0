"""Implements access control 2.0 (Apache: AuthenticationPipeline, AuthorizationPipeline): authentication, then authorization.

A stateful strategy remembers its decisions about a connection's user for a while, so that neither each request's
signature nor rights that changed meanwhile are checked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable

import attrs
from twisted.internet import defer

from twisted_mq.access.accounts import DISABLED, SUPER, Accounts
from twisted_mq.access.names import ResourceNames
from twisted_mq.access.policies import NO_POLICIES, refused
from twisted_mq.access.resources import Resource
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import UserInfo
from twisted_mq.protocol.errors import BrokerError, ProtocolError
from twisted_mq.protocol.requests.rights import Action, Rights
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, is_signed
from twisted_mq.remoting.channel import Channel

NOT_SIGNED = "check signature failed."
NOT_AUTHORIZED = "Authorization failed. Please verify your access rights and try again."


@attrs.define(eq=False)
class Remembered:
    """The decisions of the last seconds, by what was asked; the oldest is forgotten past `most`."""

    seconds: float
    most: int
    now: Callable[[], float]
    _answers: dict[Hashable, tuple[float, str | None]] = attrs.field(factory=dict)

    def check(self, key: Hashable, check: Callable[[], None]) -> None:
        """Call `check`, unless it succeeded recently."""
        known = self._answers.get(key)
        if known is None or known[0] <= self.now():
            known = self.now() + self.seconds, _refusal_of(check)
            self._answers.pop(key, None)
            self._answers[key] = known
            while len(self._answers) > self.most:
                del self._answers[next(iter(self._answers))]
        if known[1] is not None:
            raise refused(known[1])


def _refusal_of(check: Callable[[], None]) -> str | None:
    try:
        check()
    except BrokerError as error:
        return error.remark
    return None


@attrs.define(eq=False, kw_only=True)
class UserAccess:
    """Makes the checks of one server. Codes on the white lists are not checked; `authenticates` and `authorizes` are its
    switches.
    """

    accounts: Accounts
    names: ResourceNames
    authenticates: bool
    authorizes: bool
    not_authenticated: frozenset[int] = frozenset()
    not_authorized: frozenset[int] = frozenset()
    authenticated: Remembered | None = None
    authorized: Remembered | None = None
    log = Logger()

    @property
    def source(self) -> Accounts:
        """Return the users and policies."""
        return self.accounts

    @property
    def remembers(self) -> bool:
        """Return False for what a stateful strategy remembers longer."""
        return self.authenticated is None and self.authorized is None

    def secret(self, channel: Channel, command: RemotingCommand) -> str | None:
        """Return the user's password; None if it is not checked."""
        if not self.authenticates or command.code in self.not_authenticated:
            return None
        return self.accounts.users[command.ext_fields[ACCESS_KEY]].password or ""

    def check(self, channel: Channel, command: RemotingCommand) -> defer.Deferred[None] | None:
        """Check a request. Raises, or fails with, BrokerError (NO_PERMISSION)."""
        name, code = command.ext_fields.get(ACCESS_KEY) or "", command.code
        user = self.accounts.users.get(name)
        if self.authenticates and code not in self.not_authenticated:
            if self.authenticated is not None or user is None or user.user_status == DISABLED:
                self._authenticate(channel, command, name)
            elif not is_signed(command, user.password or ""):
                raise self._unauthenticated(channel, command, name, refused(NOT_SIGNED))
        if not self.authorizes or code in self.not_authorized:
            return None
        if user is None or user.user_type == SUPER:
            self._user(name)
            return None
        try:
            return self.names.check_all(command, lambda rights, named: self._authorize(channel, name, rights, named))
        except ProtocolError as error:
            if isinstance(error, BrokerError):
                raise
            raise refused("parse authorization context error.") from error

    def check_resource(
        self, channel: Channel, account: str | None, code: int, actions: tuple[Action, ...], resource: Resource
    ) -> None:
        """Check an account's right. Raises BrokerError (NO_PERMISSION)."""
        if not self.authorizes or code in self.not_authorized:
            return
        name = account or ""
        if self._user(name).user_type != SUPER:
            self._authorize(channel, name, Rights(actions), [resource])

    def _authenticate(self, channel: Channel, command: RemotingCommand, name: str) -> None:
        try:
            if self.authenticated is None:
                self._check_signature(command, name)
            else:
                self.authenticated.check((channel, name), lambda: self._check_signature(command, name))
        except BrokerError as error:
            raise self._unauthenticated(channel, command, name, error) from None

    def _unauthenticated(
        self, channel: Channel, command: RemotingCommand, name: str, error: BrokerError
    ) -> BrokerError:
        """Return the same refusal, after logging it."""
        self.log.info(
            "request refused: peer={peer} code={code} user={user} {e}",
            peer=channel.address,
            code=command.code,
            user=name,
            e=error,
        )
        return error

    def _check_signature(self, command: RemotingCommand, name: str) -> None:
        if not name:
            raise refused("username cannot be null.")
        user = self.accounts.users.get(name)
        if user is None:
            raise refused(f"User:{name} is not found.")
        if user.user_status == DISABLED:
            raise refused(f"User:{name} is disabled.")
        if not is_signed(command, user.password or ""):
            raise refused(NOT_SIGNED)

    def _user(self, name: str) -> UserInfo:
        if not name:
            raise refused(NOT_AUTHORIZED)
        user = self.accounts.users.get(name)
        if user is None:
            raise refused(f"User:{name} not found.")
        return user

    def _authorize(self, channel: Channel, name: str, rights: Rights, resources: list[Resource]) -> None:
        for resource in resources:
            if self.authorized is None:
                self._check_right(channel, name, rights, resource)
            else:
                key = channel, name, resource, rights.actions
                self.authorized.check(key, functools.partial(self._check_right, channel, name, rights, resource))

    def _check_right(self, channel: Channel, name: str, rights: Rights, resource: Resource) -> None:
        source_ip = channel.remote_address[0]
        refusal = (self.accounts.policies_of(name) or NO_POLICIES).refusal(name, resource, rights.actions, source_ip)
        if refusal is None:
            return
        self.log.info(
            "right refused: user={user} actions={actions} resource={resource} source={ip}",
            user=name,
            actions=",".join(rights.actions),
            resource=str(resource),
            ip=source_ip,
        )
        raise refusal
