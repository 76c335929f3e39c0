"""Implements `mqadmin createUser`, `updateUser`, `deleteUser`, `getUser`, `listUser`, `copyUser`: accounts of brokers."""

from __future__ import annotations

from twisted_mq.admin.access import create_user_at, get_user_at, update_user_at, users_at
from twisted_mq.cli.admin.calls import AdminContext, chosen_brokers, chosen_masters
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.protocol.bodies import UserInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
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
            _show(admin, [found])
            return


async def list_user(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await users_at(admin, address, line.value("f") or None)
        if found:
            _show(admin, found)
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


def _show(admin: AdminContext, users: list[UserInfo]) -> None:
    admin.say(USERS.head)
    for user in users:
        admin.row(USERS, user.username, user.password, user.user_type, user.user_status)
