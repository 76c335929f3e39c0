"""Implements the subcommands of `mqadmin` for accounts of brokers, and for what they may do.

createUser updateUser deleteUser getUser listUser copyUser
createAcl updateAcl deleteAcl getAcl listAcl copyAcl
"""

from __future__ import annotations

from twisted_mq.admin.access import (
    acls_at,
    create_acl_at,
    create_user_at,
    get_acl_at,
    get_user_at,
    update_acl_at,
    update_user_at,
    users_at,
)
from twisted_mq.cli.admin.calls import AdminContext, chosen_brokers, chosen_masters
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_text import list_text
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
)

USERS = TextTable.of(
    "{:<16}  {:<22}  {:<22}  {:<22}",
    username="#UserName",
    password="#Password",
    userType="#UserType",
    userStatus="#UserStatus",
)


def _user(line: CommandLine) -> UserInfo:
    values = {key: line.value(key) if key in line else None for key in "upts"}
    return UserInfo(values["u"], values["p"], values["t"], values["s"])


async def create_user(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_brokers(admin, line):
        await create_user_at(admin, address, _user(line))
        admin.say(f"create user to {address} success.", broker=address, username=line.value("u"))


async def update_user(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_brokers(admin, line):
        await update_user_at(admin, address, _user(line))
        admin.say(f"update user to {address} success.", broker=address, username=line.value("u"))


async def delete_user(admin: AdminContext, line: CommandLine) -> None:
    header = DeleteUserRequestHeader(username=line.value("u"))
    for address in await chosen_brokers(admin, line):
        await admin.invoke(address, RequestCode.AUTH_DELETE_USER, header)
        admin.say(f"delete user to {address} success.", broker=address, deleted=line.value("u"))


async def get_user(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await get_user_at(admin, address, line.value("u"))
        if found is not None:
            _show_users(admin, [found])
            return


async def list_user(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await users_at(admin, address, line.value("f") or None)
        if found:
            _show_users(admin, found)
            admin.say(None if "b" in line else f"get user from {address} success.")
            return


async def copy_user(admin: AdminContext, line: CommandLine) -> None:
    source, target = line.value("f"), line.value("t")
    named = [await get_user_at(admin, source, name) for name in line.parts("u")]
    users = [user for user in named if user is not None] if "u" in line else await users_at(admin, source, None)
    for user in users:
        is_new = await get_user_at(admin, target, user.username or "") is None
        await (create_user_at if is_new else update_user_at)(admin, target, user)
        admin.say(f"copy user of {user.username} from {source} to {target} success.",
                  username=user.username, source=source, target=target)  # fmt: skip


def _show_users(admin: AdminContext, users: list[UserInfo]) -> None:
    admin.say(USERS.head)
    for user in users:
        admin.row(USERS, user.username, user.password, user.user_type, user.user_status)


RULES = TextTable.of(
    "{:<16}  {:<10}  {:<22}  {:<20}  {:<24}  {:<10}",
    subject="#Subject",
    policyType="#PolicyType",
    resource="#Resource",
    actions="#Actions",
    sourceIp="#SourceIp",
    decision="#Decision",
)


def _acl(line: CommandLine) -> AclInfo:
    """Return one policy with an entry for each resource (AclInfo.of)."""
    ips = line.parts("i") if "i" in line else None
    entries = [PolicyEntryInfo(resource, line.parts("a"), ips, line.value("d")) for resource in line.parts("r")]
    return AclInfo(line.value("s"), [PolicyInfo(None, entries)])


async def create_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_brokers(admin, line):
        await create_acl_at(admin, address, _acl(line))
        admin.say(f"create acl to {address} success.", broker=address, subject=line.value("s"))


async def update_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_brokers(admin, line):
        await update_acl_at(admin, address, _acl(line))
        admin.say(f"update acl to {address} success.", broker=address, subject=line.value("s"))


async def delete_acl(admin: AdminContext, line: CommandLine) -> None:
    header = DeleteAclRequestHeader(subject=line.value("s"), resource=line.value("r") if "r" in line else None)
    for address in await chosen_brokers(admin, line):
        await admin.invoke(address, RequestCode.AUTH_DELETE_ACL, header)
        admin.say(f"delete acl to {address} success.", broker=address, subject=line.value("s"))


async def get_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await get_acl_at(admin, address, line.value("s"))
        if found is not None:
            _show_acls(admin, [found])


async def list_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await acls_at(admin, address, line.value("s") or None, line.value("r") or None)
        if found:
            _show_acls(admin, found)


async def copy_acl(admin: AdminContext, line: CommandLine) -> None:
    source, target = line.value("f"), line.value("t")
    named = [await get_acl_at(admin, source, subject) for subject in line.parts("s")]
    acls = [acl for acl in named if acl is not None] if "s" in line else await acls_at(admin, source, None, None)
    for acl in acls:
        is_new = await get_acl_at(admin, target, acl.subject or "") is None
        await (create_acl_at if is_new else update_acl_at)(admin, target, acl)
        admin.say(f"copy acl of {acl.subject} from {source} to {target} success.",
                  subject=acl.subject, source=source, target=target)  # fmt: skip


def _show_acls(admin: AdminContext, acls: list[AclInfo]) -> None:
    """Show a row for each rule, one with empty columns for a subject without rules."""
    admin.say(RULES.head)
    for acl in acls:
        if not acl.policies:
            admin.row(RULES, acl.subject, "", "", "", "", "")
        for policy in acl.policies or ():
            for entry in policy.entries or ():
                actions, ips = (None if one is None else list_text(one) for one in (entry.actions, entry.source_ips))
                admin.row(RULES, acl.subject, policy.policy_type, entry.resource, actions, ips, entry.decision)
