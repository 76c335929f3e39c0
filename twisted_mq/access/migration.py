"""Converts accounts of access control 1.0 to users and policies of 2.0 (Apache: AuthMigrator)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twisted_mq.access.accounts import NORMAL, SUPER, Accounts, subject_of
from twisted_mq.access.plain_accounts import Permission, PlainAccount
from twisted_mq.access.resources import ALL, ResourceType
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from twisted_mq.protocol.requests.rights import Action

_ACTIONS = {Permission.PUB: Action.PUB, Permission.SUB: Action.SUB}


def migrate(plain: Iterable[PlainAccount], accounts: Accounts) -> list[str]:
    """Create users for accounts, unless a user of that name exists; return the names of the new ones."""
    made = [account for account in plain if account.access_key not in accounts.users]
    for account in made:
        name = account.access_key
        accounts.create_user(UserInfo(name, account.secret_key, SUPER if account.admin else NORMAL))
        accounts.put_policies(subject_of(name), _policies(account))
    return [account.access_key for account in made]


def _policies(account: PlainAccount) -> AclInfo:
    topics, groups = ResourceType.TOPIC, ResourceType.GROUP
    custom = [*_entries(topics, account.topics), *_entries(groups, account.groups)]
    default = [*_entries(topics, {ALL: account.default_topic}), *_entries(groups, {ALL: account.default_group})]
    policies = [PolicyInfo("Custom", custom), PolicyInfo("Default", default)]
    return AclInfo(subject_of(account.access_key), [policy for policy in policies if policy.entries])


def _entries(kind: ResourceType, permissions: Mapping[str, Permission]) -> list[PolicyEntryInfo]:
    return [_entry(f"{kind}:{name}", granted) for name, granted in permissions.items()]


def _entry(resource: str, granted: Permission) -> PolicyEntryInfo:
    actions = [action.value for permission, action in _ACTIONS.items() if permission in granted]
    if not actions:
        return PolicyEntryInfo(resource, [Action.ALL.value], None, "Deny")
    return PolicyEntryInfo(resource, actions, None, "Allow")
