"""`mqadmin createAcl`, `updateAcl`, `deleteAcl`, `getAcl`, `listAcl`, `copyAcl`: what users may do at brokers."""

from __future__ import annotations

from twisted_mq.cli.admin.calls import AdminContext, chosen_brokers, chosen_masters
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_text import list_text
from twisted_mq.cli.admin.tables import Table
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, decode_body, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    CreateAclRequestHeader,
    DeleteAclRequestHeader,
    GetAclRequestHeader,
    ListAclsRequestHeader,
    UpdateAclRequestHeader,
)

RULES = Table.of(
    "{:<16}  {:<10}  {:<22}  {:<20}  {:<24}  {:<10}",
    subject="#Subject",
    policyType="#PolicyType",
    resource="#Resource",
    actions="#Actions",
    sourceIp="#SourceIp",
    decision="#Decision",
)


def _acl(line: CommandLine) -> AclInfo:
    """One policy with an entry a resource (AclInfo.of)."""
    ips = line.parts("i") if "i" in line else None
    entries = [PolicyEntryInfo(resource, line.parts("a"), ips, line.value("d")) for resource in line.parts("r")]
    return AclInfo(line.value("s"), [PolicyInfo(None, entries)])


async def create_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_brokers(admin, line):
        await _create(admin, address, _acl(line))
        admin.say(f"create acl to {address} success.", broker=address, subject=line.value("s"))


async def update_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_brokers(admin, line):
        await _update(admin, address, _acl(line))
        admin.say(f"update acl to {address} success.", broker=address, subject=line.value("s"))


async def delete_acl(admin: AdminContext, line: CommandLine) -> None:
    header = DeleteAclRequestHeader(subject=line.value("s"), resource=line.value("r") if "r" in line else None)
    for address in await chosen_brokers(admin, line):
        await admin.invoke(address, RequestCode.AUTH_DELETE_ACL, header)
        admin.say(f"delete acl to {address} success.", broker=address, subject=line.value("s"))


async def get_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await _get(admin, address, line.value("s"))
        if found is not None:
            _show(admin, [found])


async def list_acl(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        found = await _list(admin, address, line.value("s") or None, line.value("r") or None)
        if found:
            _show(admin, found)


async def copy_acl(admin: AdminContext, line: CommandLine) -> None:
    source, target = line.value("f"), line.value("t")
    named = [await _get(admin, source, subject) for subject in line.parts("s")]
    acls = [acl for acl in named if acl is not None] if "s" in line else await _list(admin, source, None, None)
    for acl in acls:
        is_new = await _get(admin, target, acl.subject or "") is None
        await (_create if is_new else _update)(admin, target, acl)
        admin.say(f"copy acl of {acl.subject} from {source} to {target} success.",
                  subject=acl.subject, source=source, target=target)  # fmt: skip


def _show(admin: AdminContext, acls: list[AclInfo]) -> None:
    """A row for each rule, one with empty columns for a subject without any."""
    admin.say(RULES.head)
    for acl in acls:
        if not acl.policies:
            admin.row(RULES, acl.subject, "", "", "", "", "")
        for policy in acl.policies or ():
            for entry in policy.entries or ():
                actions, ips = (None if one is None else list_text(one) for one in (entry.actions, entry.source_ips))
                admin.row(RULES, acl.subject, policy.policy_type, entry.resource, actions, ips, entry.decision)


async def _create(admin: AdminContext, address: str, acl: AclInfo) -> None:
    header = CreateAclRequestHeader(subject=acl.subject)
    await admin.invoke(address, RequestCode.AUTH_CREATE_ACL, header, encode_body(acl))


async def _update(admin: AdminContext, address: str, acl: AclInfo) -> None:
    header = UpdateAclRequestHeader(subject=acl.subject)
    await admin.invoke(address, RequestCode.AUTH_UPDATE_ACL, header, encode_body(acl))


async def _get(admin: AdminContext, address: str, subject: str) -> AclInfo | None:
    """None where the broker has no rules for it."""
    body = (await admin.invoke(address, RequestCode.AUTH_GET_ACL, GetAclRequestHeader(subject=subject))).body
    return decode_body(AclInfo, body) if body and body != b"null" else None


async def _list(admin: AdminContext, address: str, subject: str | None, resource: str | None) -> list[AclInfo]:
    header = ListAclsRequestHeader(subject_filter=subject, resource_filter=resource)
    body = (await admin.invoke(address, RequestCode.AUTH_LIST_ACL, header)).body
    return decode_body(list[AclInfo], body) if body else []
