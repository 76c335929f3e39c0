"""Implements access control 1.0 (Apache until 5.3.2: PlainPermissionManager, PlainPermissionChecker).

It checks in this order. A request from a listed address is allowed. The access key names the account. A request from the
account's own listed address is allowed. The signature must be right. An admin may do everything. For other accounts, a
request to send or consume needs the permission on each topic and group that it names; a request that only reads is open
to every account; all the rest is for admins. (Apache's has nine codes for admins, and lets every account make other
changes to a broker.)
"""

from __future__ import annotations

import attrs
from twisted.internet import defer

from twisted_mq.access.names import ResourceNames
from twisted_mq.access.plain_accounts import Permission, PlainAccount
from twisted_mq.access.plain_files import PlainFiles
from twisted_mq.access.resources import Resource, ResourceType
from twisted_mq.access.white_list import is_listed
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.names.system_topics import TRACE_TOPIC
from twisted_mq.protocol.requests.rights import Action, Rights
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, is_signed
from twisted_mq.remoting.channel import Channel

_NEEDED = {Action.PUB: Permission.PUB, Action.SUB: Permission.SUB}
_READING = {Action.GET, Action.LIST}


def refused(reason: str) -> BrokerError:
    """Return a refusal as Apache's clients know it: a system error with the exception's name."""
    return BrokerError(ResponseCode.SYSTEM_ERROR, f"org.apache.rocketmq.acl.common.AclException: {reason}")


@attrs.define(eq=False)
class PlainAccess:
    """Makes the checks of one server."""

    files: PlainFiles
    names: ResourceNames
    remembers: bool = attrs.field(default=True, init=False)
    log = Logger()

    @property
    def source(self) -> PlainFiles:
        """Return the files with the accounts."""
        return self.files

    def secret(self, channel: Channel, command: RemotingCommand) -> str | None:
        """Return the account's key; None for a listed address."""
        account = self._account(channel.remote_address[0], command.ext_fields.get(ACCESS_KEY))
        return None if account is None else account.secret_key

    def check(self, channel: Channel, command: RemotingCommand) -> defer.Deferred[None] | None:
        """Check a request. Raises, or fails with, BrokerError (SYSTEM_ERROR)."""
        try:
            return self._check(channel.remote_address[0], command)
        except BrokerError as error:
            self.log.info(
                "request refused: peer={peer} code={code} {e}", peer=channel.address, code=command.code, e=error
            )
            raise

    def check_resource(
        self, channel: Channel, account: str | None, code: int, actions: tuple[Action, ...], resource: Resource
    ) -> None:
        """Check an account's right. Raises BrokerError (SYSTEM_ERROR)."""
        found = self._account(channel.remote_address[0], account)
        if found is not None and not found.admin:
            _check_all(found, code, Rights(actions), [resource])

    def _check(self, source_ip: str, command: RemotingCommand) -> defer.Deferred[None] | None:
        account = self._account(source_ip, command.ext_fields.get(ACCESS_KEY))
        if account is None:
            return None
        if not is_signed(command, account.secret_key):
            raise refused(f"Check signature failed for accessKey={account.access_key}")
        if account.admin:
            return None
        return self.names.check_all(command, lambda rights, named: _check_all(account, command.code, rights, named))

    def _account(self, source_ip: str, access_key: str | None) -> PlainAccount | None:
        """Return the account whose signature and permissions count; None for a listed address."""
        known = self.files.accounts
        if known.white_list and is_listed(source_ip, known.white_list):
            return None
        if access_key is None:
            raise refused("No accessKey is configured")
        account = known.accounts.get(access_key)
        if account is None:
            raise refused(f"No acl config for {access_key}")
        return None if account.white_list and is_listed(source_ip, account.white_list) else account


def _check_all(account: PlainAccount, code: int, rights: Rights, resources: list[Resource]) -> None:
    needed = Permission.DENY
    for action in rights.actions:
        needed |= _NEEDED.get(action, Permission.DENY)
    if not needed and not _READING.intersection(rights.actions) and not rights.for_all:
        raise refused(f"Need admin permission for request code={code}, but accessKey={account.access_key} is not")
    if needed and not _is_trace(rights, resources):
        for resource in resources:
            _check_permission(account, code, needed, resource)


def _is_trace(rights: Rights, resources: list[Resource]) -> bool:
    """Return True if a send is to the topic of traces, which every account may use."""
    return rights.actions == (Action.PUB,) and any(resource.name == TRACE_TOPIC for resource in resources)


def _check_permission(account: PlainAccount, code: int, needed: Permission, resource: Resource) -> None:
    name = resource.name or ""
    if resource.type is ResourceType.CLUSTER:
        raise refused(f"Need admin permission for request code={code}, but accessKey={account.access_key} is not")
    is_group = resource.type is ResourceType.GROUP
    said = (account.groups if is_group else account.topics).get(name)
    owned = said if said is not None else account.default_group if is_group else account.default_topic
    if not owned & needed:
        what = f"{'group' if is_group else 'topic'}:{name}"
        raise refused(f"No permission for {what}" if said is not None else f"No default permission for {what}")
