"""Serves AUTH_CREATE_USER to AUTH_LIST_ACL: administrators' requests about users and policies (Apache: AdminBrokerProcessor).

Answers have no passwords, except getUser's answer to another server: a proxy in front of brokers checks the signatures of
its clients. A server signs with the credentials of innerClientAuthenticationCredentials. Apache's answers show passwords
to every caller.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet import defer

from twisted_mq.access.accounts import SUPER, Accounts, parse_user_type
from twisted_mq.access.policies import parse_policy_type, refused
from twisted_mq.access.resources import parse_resource
from twisted_mq.protocol.bodies import AclInfo, UserInfo, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import (
    CreateAclRequestHeader,
    CreateUserRequestHeader,
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
    GetAclRequestHeader,
    GetUserRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    UpdateUserRequestHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.protocol.wire.signature import ACCESS_KEY, Credentials, is_signed
from twisted_mq.remoting.channel import Answer, Channel

MOST_BODY_BYTES = 64 * 1024
ONLY_BY_SUPER_USER = "The super user can only be {done} by super user"


class AccountRequests:
    """Serves the requests of one server."""

    def __init__(self, accounts: Accounts, servers: Credentials | None = None) -> None:
        self._accounts = accounts
        self._servers = servers
        self.processors = {
            RequestCode.AUTH_CREATE_USER: self.create_user,
            RequestCode.AUTH_UPDATE_USER: self.update_user,
            RequestCode.AUTH_DELETE_USER: self.delete_user,
            RequestCode.AUTH_GET_USER: self.get_user,
            RequestCode.AUTH_LIST_USER: self.list_users,
            RequestCode.AUTH_CREATE_ACL: self.put_acl,
            RequestCode.AUTH_UPDATE_ACL: self.put_acl,
            RequestCode.AUTH_DELETE_ACL: self.delete_acl,
            RequestCode.AUTH_GET_ACL: self.get_acl,
            RequestCode.AUTH_LIST_ACL: self.list_acls,
        }

    def create_user(self, channel: Channel, command: RemotingCommand) -> Answer:
        user = _user(decode_header(CreateUserRequestHeader, command).username, command)
        if parse_user_type(user.user_type) == SUPER and not self._by_super_user(command):
            raise BrokerError(ResponseCode.SYSTEM_ERROR, ONLY_BY_SUPER_USER.format(done="create"))
        self._accounts.create_user(user)
        return self._saved(command)

    def update_user(self, channel: Channel, command: RemotingCommand) -> Answer:
        user = _user(decode_header(UpdateUserRequestHeader, command).username, command)
        remark = ONLY_BY_SUPER_USER.format(done="update")
        if parse_user_type(user.user_type) == SUPER and not self._by_super_user(command):
            raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
        self._check_power_over(user.username or "", command)
        self._accounts.update_user(user)
        return self._saved(command)

    def delete_user(self, channel: Channel, command: RemotingCommand) -> Answer:
        name = decode_header(DeleteUserRequestHeader, command).username or ""
        self._check_power_over(name, command)
        self._accounts.delete_user(name)
        return self._saved(command)

    def get_user(self, channel: Channel, command: RemotingCommand) -> Answer:
        name = decode_header(GetUserRequestHeader, command).username or ""
        if not name.strip():
            raise BrokerError(ResponseCode.INVALID_PARAMETER, "The username is blank")
        user = self._accounts.users.get(name)
        if user is None:
            return command.answer(body=b"")
        return command.answer(body=encode_body(user if self._by_server(command) else _shown(user)))

    def list_users(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the users with the filter's text in their names; no body if no user matches."""
        users = self._accounts.list_users(decode_header(ListUsersRequestHeader, command).filter or "")
        return command.answer(body=_list([_shown(user) for user in users]))

    def put_acl(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Serve AUTH_CREATE_ACL and AUTH_UPDATE_ACL, which are the same: rules replace those about the same resources."""
        header = decode_header(CreateAclRequestHeader, command)
        info = decode_body(AclInfo, _checked(command))
        if not info.policies:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "The body of acl is null")
        self._accounts.put_policies(info.subject or header.subject or "", info)
        return self._saved(command)

    def delete_acl(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Delete all policies of a subject, or the rules about a resource."""
        header = decode_header(DeleteAclRequestHeader, command)
        resource = parse_resource(header.resource)
        if resource is None and header.resource and header.resource.strip():
            raise refused(f"The resource {header.resource} is illegal.")
        self._accounts.delete_policies(header.subject or "", parse_policy_type(header.policy_type), resource)
        return self._saved(command)

    def get_acl(self, channel: Channel, command: RemotingCommand) -> Answer:
        info = self._accounts.policies_info_of(decode_header(GetAclRequestHeader, command).subject or "")
        return command.answer(body=b"" if info is None else encode_body(info))

    def list_acls(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the policies with the filters' texts in subject and resources; no body if none matches."""
        header = decode_header(ListAclsRequestHeader, command)
        return command.answer(
            body=_list(self._accounts.list_policies(header.subject_filter or "", header.resource_filter or ""))
        )

    def _by_server(self, command: RemotingCommand) -> bool:
        """Return whether a server signed the request. The signature is checked here, because requests may not be checked
        at all.
        """
        servers = self._servers
        if servers is None or command.ext_fields.get(ACCESS_KEY) != servers.access_key:
            return False
        return is_signed(command, servers.secret_key)

    def _by_super_user(self, command: RemotingCommand) -> bool:
        """Return True if the user is a super user, or the request names none. Raises BrokerError for an unknown user."""
        name = command.ext_fields.get(ACCESS_KEY)
        return not name or self._accounts.is_super(name)

    def _check_power_over(self, name: str, command: RemotingCommand) -> None:
        user = self._accounts.users.get(name)
        if user is not None and user.user_type == SUPER and not self._by_super_user(command):
            raise refused(ONLY_BY_SUPER_USER.format(done="update"))

    def _saved(self, command: RemotingCommand) -> defer.Deferred[RemotingCommand]:
        return self._accounts.saved().addCallback(lambda _: command.answer())


def _checked(command: RemotingCommand) -> bytes:
    if len(command.body) > MOST_BODY_BYTES:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"body: {len(command.body)} bytes exceed the limit")
    return command.body


def _user(name: str | None, command: RemotingCommand) -> UserInfo:
    """Return the user of the body under the name of the header. Raises BrokerError, BodyError."""
    if not name:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return attrs.evolve(decode_body(UserInfo, _checked(command)), username=name)


def _shown(user: UserInfo) -> UserInfo:
    return attrs.evolve(user, password=None)


def _list(items: Sequence[object]) -> bytes:
    return encode_body(list(items)) if items else b""
