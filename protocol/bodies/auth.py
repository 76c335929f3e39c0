"""Users and access control lists."""

from __future__ import annotations

import attrs


@attrs.frozen
class UserInfo:
    """Request body of AUTH_CREATE_USER, AUTH_UPDATE_USER. Answer to AUTH_GET_USER, AUTH_LIST_USER."""

    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    user_type: str | None = None
    user_status: str | None = None


@attrs.frozen
class PolicyEntryInfo:
    """A rule: which actions on a resource (`Topic:name`) from which addresses are allowed or denied."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


@attrs.frozen
class PolicyInfo:
    """Rules of a policy type, Custom or Default."""

    policy_type: str | None = None
    entries: list[PolicyEntryInfo] | None = None


@attrs.frozen
class AclInfo:
    """Request body of AUTH_CREATE_ACL, AUTH_UPDATE_ACL. Answer to AUTH_GET_ACL, AUTH_LIST_ACL."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None


@attrs.frozen
class AccessWrapper:
    """config/access.json: users by name, policies by subject."""

    users: dict[str, UserInfo] = attrs.field(factory=dict)
    acls: dict[str, AclInfo] = attrs.field(factory=dict)
