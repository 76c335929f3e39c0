"""Requests for the accounts and rights of brokers (Apache: AuthAdminProcessor)."""

from __future__ import annotations

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.protocol.bodies import AclInfo, UserInfo, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    CreateAclRequestHeader,
    CreateUserRequestHeader,
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
    GetAclRequestHeader,
    GetUserRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    UpdateAclRequestHeader,
    UpdateUserRequestHeader,
)


async def create_user_at(admin: AdminCalls, address: str, user: UserInfo) -> None:
    """Create an account at a broker."""
    header = CreateUserRequestHeader(username=user.username)
    await admin.invoke(address, RequestCode.AUTH_CREATE_USER, header, encode_body(user))


async def update_user_at(admin: AdminCalls, address: str, user: UserInfo) -> None:
    """Change an account at a broker. Fields that are None keep their value."""
    header = UpdateUserRequestHeader(username=user.username)
    await admin.invoke(address, RequestCode.AUTH_UPDATE_USER, header, encode_body(user))


async def delete_user_at(admin: AdminCalls, address: str, username: str) -> None:
    """Delete an account at a broker."""
    await admin.invoke(address, RequestCode.AUTH_DELETE_USER, DeleteUserRequestHeader(username=username))


async def get_user_at(admin: AdminCalls, address: str, username: str) -> UserInfo | None:
    """Return an account; None if the broker does not have it."""
    body = (await admin.invoke(address, RequestCode.AUTH_GET_USER, GetUserRequestHeader(username=username))).body
    return decode_body(UserInfo, body) if body and body != b"null" else None


async def users_at(admin: AdminCalls, address: str, text: str | None) -> list[UserInfo]:
    """Return the accounts of a broker whose names contain the text."""
    body = (await admin.invoke(address, RequestCode.AUTH_LIST_USER, ListUsersRequestHeader(filter=text))).body
    return decode_body(list[UserInfo], body) if body else []


async def create_acl_at(admin: AdminCalls, address: str, acl: AclInfo) -> None:
    """Give a subject its first rules at a broker."""
    header = CreateAclRequestHeader(subject=acl.subject)
    await admin.invoke(address, RequestCode.AUTH_CREATE_ACL, header, encode_body(acl))


async def update_acl_at(admin: AdminCalls, address: str, acl: AclInfo) -> None:
    """Add rules to a subject at a broker. Rules of the same resources are replaced."""
    header = UpdateAclRequestHeader(subject=acl.subject)
    await admin.invoke(address, RequestCode.AUTH_UPDATE_ACL, header, encode_body(acl))


async def delete_acl_at(admin: AdminCalls, address: str, subject: str, resource: str | None = None) -> None:
    """Remove the rules of a subject at a broker: for one resource, or all."""
    header = DeleteAclRequestHeader(subject=subject, resource=resource)
    await admin.invoke(address, RequestCode.AUTH_DELETE_ACL, header)


async def get_acl_at(admin: AdminCalls, address: str, subject: str) -> AclInfo | None:
    """Return the rules of a subject; None if the broker has none."""
    body = (await admin.invoke(address, RequestCode.AUTH_GET_ACL, GetAclRequestHeader(subject=subject))).body
    return decode_body(AclInfo, body) if body and body != b"null" else None


async def acls_at(admin: AdminCalls, address: str, subject: str | None, resource: str | None) -> list[AclInfo]:
    """Return the rules of a broker, by subject. None matches all subjects or resources."""
    header = ListAclsRequestHeader(subject_filter=subject, resource_filter=resource)
    body = (await admin.invoke(address, RequestCode.AUTH_LIST_ACL, header)).body
    return decode_body(list[AclInfo], body) if body else []
