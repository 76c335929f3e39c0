"""Accounts of access control 1.0, as plain_acl.yml has them (Apache: PlainAccessConfig, Permission).

globalWhiteRemoteAddresses: [10.0.0.*]
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress: 192.168.0.*
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms: [Orders=PUB, Audit=PUB|SUB]
    groupPerms: [audit=SUB]
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping

import attrs

from twisted_mq.access.white_list import Pattern, white_list

MOST_SHORT = 6
"""The longest key that is too short, in characters (Apache: AclConstants)."""


class Permission(enum.Flag):
    """The permissions of an account (Apache: Permission); DENY is none of them."""

    DENY = 0
    PUB = 1
    SUB = 2


_PERMISSIONS = {
    "PUB": Permission.PUB,
    "SUB": Permission.SUB,
    "PUB|SUB": Permission.PUB | Permission.SUB,
    "SUB|PUB": Permission.PUB | Permission.SUB,
}


@attrs.frozen
class PlainAccount:
    """An account; `topics` and `groups` are the permissions on single ones."""

    access_key: str
    secret_key: str = attrs.field(repr=False)
    white_list: list[Pattern]
    admin: bool = False
    default_topic: Permission = Permission.DENY
    default_group: Permission = Permission.DENY
    topics: Mapping[str, Permission] = attrs.field(factory=dict)
    groups: Mapping[str, Permission] = attrs.field(factory=dict)


@attrs.frozen
class PlainAccounts:
    """All accounts by access key, and the addresses that need none."""

    accounts: Mapping[str, PlainAccount] = attrs.field(factory=dict)
    white_list: list[Pattern] = attrs.field(factory=list)


def permission(text: object) -> Permission:
    """Return the permission of PUB, SUB, PUB|SUB; any other text denies."""
    return _PERMISSIONS.get(str(text).strip(), Permission.DENY)


def read_accounts(data: object) -> PlainAccounts:
    """Return the accounts in one file, from its YAML. Raises ValueError, which names the account and the member, never a
    secret.
    """
    if data is None:
        return PlainAccounts()
    if not isinstance(data, dict):
        raise ValueError("not a mapping with accounts")
    accounts: dict[str, PlainAccount] = {}
    for one in _members(data, "accounts"):
        account = _account(one)
        accounts.setdefault(account.access_key, account)
    return PlainAccounts(accounts, white_list(str(one) for one in _members(data, "globalWhiteRemoteAddresses")))


def together(files: Iterable[PlainAccounts], repeated: Callable[[str], None]) -> PlainAccounts:
    """Join the accounts of several files. The first account of an access key counts; the others are passed to `repeated`."""
    accounts: dict[str, PlainAccount] = {}
    patterns: list[Pattern] = []
    for one in files:
        for key, account in one.accounts.items():
            if accounts.setdefault(key, account) is not account:
                repeated(key)
        patterns += one.white_list
    return PlainAccounts(accounts, patterns)


def _members(data: Mapping[object, object], name: str) -> list[object]:
    members = data.get(name) or []
    if not isinstance(members, list):
        raise ValueError(f"{name} is not a list")
    return members


def _account(data: object) -> PlainAccount:
    if not isinstance(data, dict):
        raise ValueError("an account is not a mapping")
    access_key, secret_key = _key(data, "accessKey"), _key(data, "secretKey")
    address = data.get("whiteRemoteAddress")
    return PlainAccount(
        access_key,
        secret_key,
        white_list([None if address is None else str(address)]),
        admin=data.get("admin") is True,
        default_topic=permission(data.get("defaultTopicPerm")),
        default_group=permission(data.get("defaultGroupPerm")),
        topics=_permissions(data, "topicPerms", access_key),
        groups=_permissions(data, "groupPerms", access_key),
    )


def _key(data: Mapping[object, object], name: str) -> str:
    text = "" if data.get(name) is None else str(data[name])
    if len(text) <= MOST_SHORT:
        raise ValueError(f"the {name} of accessKey={data.get('accessKey')} must be longer than {MOST_SHORT} characters")
    return text


def _permissions(data: Mapping[object, object], name: str, access_key: str) -> dict[str, Permission]:
    pairs = [str(one).split("=") for one in _members(data, name)]
    wrong = next((pair for pair in pairs if len(pair) != 2), None)
    if wrong is not None:
        raise ValueError(f"{name} of {access_key}: {'='.join(wrong)} must be name=permission")
    return {resource.strip(): permission(granted) for resource, granted in pairs}
