"""Users and access control lists."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.fields import text


@attrs.frozen(kw_only=True)
class CreateUserRequestHeader:
    """Request of AUTH_CREATE_USER."""

    username: str | None = field(default=None, metadata=text("username"))


@attrs.frozen(kw_only=True)
class UpdateUserRequestHeader:
    """Request of AUTH_UPDATE_USER."""

    username: str | None = field(default=None, metadata=text("username"))


@attrs.frozen(kw_only=True)
class DeleteUserRequestHeader:
    """Request of AUTH_DELETE_USER."""

    username: str | None = field(default=None, metadata=text("username"))


@attrs.frozen(kw_only=True)
class GetUserRequestHeader:
    """Request of AUTH_GET_USER."""

    username: str | None = field(default=None, metadata=text("username"))


@attrs.frozen(kw_only=True)
class ListUsersRequestHeader:
    """Request of AUTH_LIST_USER."""

    filter: str | None = field(default=None, metadata=text("filter"))


@attrs.frozen(kw_only=True)
class CreateAclRequestHeader:
    """Request of AUTH_CREATE_ACL."""

    subject: str | None = field(default=None, metadata=text("subject"))


@attrs.frozen(kw_only=True)
class UpdateAclRequestHeader:
    """Request of AUTH_UPDATE_ACL."""

    subject: str | None = field(default=None, metadata=text("subject"))


@attrs.frozen(kw_only=True)
class DeleteAclRequestHeader:
    """Request of AUTH_DELETE_ACL."""

    subject: str | None = field(default=None, metadata=text("subject"))
    policy_type: str | None = field(default=None, metadata=text("policyType"))
    resource: str | None = field(default=None, metadata=text("resource"))


@attrs.frozen(kw_only=True)
class GetAclRequestHeader:
    """Request of AUTH_GET_ACL."""

    subject: str | None = field(default=None, metadata=text("subject"))


@attrs.frozen(kw_only=True)
class ListAclsRequestHeader:
    """Request of AUTH_LIST_ACL."""

    subject_filter: str | None = field(default=None, metadata=text("subjectFilter"))
    resource_filter: str | None = field(default=None, metadata=text("resourceFilter"))
