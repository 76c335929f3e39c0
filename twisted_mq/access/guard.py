"""Puts authentication and authorization before each processor of a server's table.

What was allowed is remembered, until users, policies or files change, by everything that the decision depends on: the
user, the code, the topic and group that the request names, and its source address. For a remembered request only the
signature is checked, and always: the memory keeps the secret that it has to be made with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import attrs
from twisted.internet import defer

from twisted_mq.access.fitting import fit
from twisted_mq.access.resources import Resource
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.requests.rights import BY_CODE, Action
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, is_signed
from twisted_mq.remoting.channel import Answer, Channel, Processor

Checked = defer.Deferred[None] | None
"""None for a decision at once, or a Deferred for a later one."""

MOST_ALLOWED = 10_000
"""The most remembered combinations of users, topics and groups that are allowed."""
MOST_CHARACTERS = 1000
"""The longest remembered names, in characters; longer ones are checked each time."""

Named: TypeAlias = tuple[str | None, int, str | None, str | None]
"""The access key, the code, the topic and the group of a request."""
Asked: TypeAlias = tuple[str | None, int, str | None, str | None, str]
"""The same, and the address of the peer."""
NOT_KNOWN: Final = object()


class Source(Protocol):
    """The data that decisions depend on: users and policies, or files of accounts."""

    @property
    def version(self) -> object:
        """Return a version that differs after each change, never before it. Each request reads it, so it must be cheap."""


class AccessCheck(Protocol):
    """A kind of access control."""

    @property
    def source(self) -> Source:
        """Return the data on which its decisions depend, apart from the request."""

    @property
    def remembers(self) -> bool:
        """Return True if its decision, except about the signature, is the same until the source changes."""

    def check(self, channel: Channel, command: RemotingCommand) -> Checked:
        """Check a request. Raises, or fails with, BrokerError if it is refused."""

    def secret(self, channel: Channel, command: RemotingCommand) -> str | None:
        """Return the secret for the signature of an allowed request; None if it needs no signature."""

    def check_resource(
        self, channel: Channel, account: str | None, code: int, actions: tuple[Action, ...], resource: Resource
    ) -> None:
        """Raise BrokerError unless an account whose signature was checked may do one of `actions` with a resource that
        the request of this code does not name itself.
        """


class Allowed(dict[Asked, object]):
    """The requests that one check allowed, with the secret of each, since its source had this version."""

    version: object = NOT_KNOWN

    def forget(self, version: object) -> None:
        """Forget everything, because the source has changed."""
        self.clear()
        self.version = version

    def remember(self, asked: Asked, secret: str | None) -> None:
        """Remember an allowed request."""
        if len(self) >= MOST_ALLOWED:
            self.clear()
        if sum(len(name) for name in (asked[0], asked[2], asked[3]) if name) <= MOST_CHARACTERS:
            self[asked] = secret


@attrs.define(eq=False)
class Guard:
    """The checks of one server, in their order. With `strict`, signed requests with fields of another code are refused."""

    checks: Sequence[AccessCheck]
    strict: bool = True
    _allowed: list[Allowed] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._allowed = [Allowed() for _ in self.checks]

    def before(self, table: Mapping[int, Processor]) -> dict[int, Processor]:
        """Return the table with the checks before each processor. Without checks it stays as it is, so that it costs nothing.

        Raises ValueError for a code whose rights are unknown.
        """
        unknown = [code for code in table if code not in BY_CODE]
        if unknown:
            raise ValueError(f"no access rule for these requests: {unknown}")
        served = dict(table)
        if self.checks and self.strict:
            served = {code: _fitting(fit(code), one) for code, one in served.items()}
        for check, allowed in reversed([*zip(self.checks, self._allowed, strict=True)]):
            served = {code: _asking(check, allowed, code, one) for code, one in served.items()}
        return served

    def named(self, command: RemotingCommand) -> Named | None:
        """Return what decides about a request, apart from its address and signature; None if more has to be looked at."""
        fields = BY_CODE[command.code].fields
        if fields is None or not all(check.remembers for check in self.checks):
            return None
        if self.strict:
            try:
                fit(command.code)(command)
            except BrokerError:
                return None
        get, (topic, group) = command.ext_fields.get, fields
        return get(ACCESS_KEY), command.code, get(topic), get(group)

    def secrets(self, channel: Channel, named: Named, topics: Iterable[str]) -> Collection[str] | None:
        """Return the secrets with which requests of this peer have to be signed that name the same and one of these topics; none
        for an address that needs no signature. None if they have to be checked one by one: not every check remembers
        requests with each topic, or their secrets differ.
        """
        key, code, _, group = named
        secrets: set[str] = set()
        address = channel.remote_address[0]
        for check, allowed in zip(self.checks, self._allowed, strict=True):
            if allowed.version is not check.source.version:
                return None
            found = [allowed.get((key, code, topic, group, address), NOT_KNOWN) for topic in topics]
            secret = found[0]
            if secret is NOT_KNOWN or found.count(secret) < len(found):
                return None
            if isinstance(secret, str):
                secrets.add(secret)
        return None if secrets and channel.account is None else secrets


def guarded(
    table: Mapping[int, Processor], checks: Sequence[AccessCheck], *, strict: bool = True
) -> dict[int, Processor]:
    """Return the table with a guard's checks before each processor, see `Guard.before`."""
    return Guard(checks, strict).before(table)


def _fitting(check: Callable[[RemotingCommand], None], processor: Processor) -> Processor:
    def look_first(channel: Channel, command: RemotingCommand) -> Answer:
        check(command)
        return processor(channel, command)

    return look_first


def _asking(check: AccessCheck, allowed: Allowed, code: int, processor: Processor) -> Processor:
    fields = BY_CODE[code].fields if check.remembers else None
    if fields is None:
        return _asking_always(check.check, processor)
    source, (topic, group) = check.source, fields

    def ask_first(channel: Channel, command: RemotingCommand) -> Answer:
        if allowed.version is not source.version:
            allowed.forget(source.version)
        get = command.ext_fields.get
        asked = get(ACCESS_KEY), code, get(topic), get(group), channel.remote_address[0]
        secret = allowed.get(asked, NOT_KNOWN)
        if secret is None:
            return processor(channel, command)
        if type(secret) is str and is_signed(command, secret):
            if channel.account is None:
                channel.proven(asked[0] or "")
            return processor(channel, command)
        later = check.check(channel, command)
        if later is not None:
            return _answered(later, processor, channel, command)
        secret = check.secret(channel, command)
        allowed.remember(asked, secret)
        if secret is not None and channel.account is None:
            channel.proven(asked[0] or "")
        return processor(channel, command)

    return ask_first


def _asking_always(check: Callable[[Channel, RemotingCommand], Checked], processor: Processor) -> Processor:
    def ask_first(channel: Channel, command: RemotingCommand) -> Answer:
        later = check(channel, command)
        if later is None:
            return processor(channel, command)
        return _answered(later, processor, channel, command)

    return ask_first


def _answered(later: defer.Deferred[None], processor: Processor, channel: Channel, command: RemotingCommand) -> Answer:
    answered: defer.Deferred[object] = later.addCallback(lambda _: processor(channel, command))
    return answered  # type: ignore[return-value]  # what a processor answers, now inside a Deferred
