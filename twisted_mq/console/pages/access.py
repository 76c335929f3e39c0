"""Shows accounts of brokers and their rules as the masters have them, and changes them at every broker."""

from __future__ import annotations

import re

import attrs

from twisted_mq.admin.access import (
    acls_at,
    create_acl_at,
    create_user_at,
    delete_acl_at,
    delete_user_at,
    get_acl_at,
    update_acl_at,
    update_user_at,
    users_at,
)
from twisted_mq.admin.calls import brokers
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.group_settings import all_masters
from twisted_mq.console.answers import Answer, BadInput, Page, Redirect
from twisted_mq.console.forms import said
from twisted_mq.console.visit import Visit, cut
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.remoting.errors import RemotingError

ACTIONS = ("Pub", "Sub", "Create", "Update", "Delete", "Get", "List", "All")
KINDS = {"Topic": "Topic", "Group": "Group", "Cluster": "Cluster"}
STATES = {"enable": "may log in", "disable": "locked out"}
_NAME = re.compile(r"[\w%.|-]{1,255}\*?|\*")
MOST_PASSWORD = 256


@attrs.frozen
class RuleRow:
    """A rule of a subject, and the brokers that have it."""

    subject: str
    resource: str
    actions: str
    decision: str
    source_ips: str
    brokers: tuple[str, ...]


@attrs.frozen
class UserRow:
    """An account, and the brokers that have it."""

    name: str
    kind: str
    status: str
    brokers: tuple[str, ...]


async def access(visit: Visit) -> Answer:
    """Show a page of accounts and a page of rules."""
    admin, masters, wanted = visit.admin, await all_masters(visit.admin), visit.text("q").lower()

    async def at(address: str) -> tuple[list[UserInfo], list[AclInfo], str]:
        try:
            return await users_at(admin, address, None), await acls_at(admin, address, None, None), ""
        except (ProtocolError, RemotingError) as error:
            return [], [], said(error)

    told = dict(zip(masters, await concurrently(at, masters.values()), strict=True))
    users = [one for one in _users(told) if wanted in one.name.lower()]
    rules = [one for one in _rules(told) if wanted in f"{one.subject} {one.resource}".lower()]
    page = visit.number("page", "The page", 1, 1)
    values = {
        "q": visit.text("q"),
        "users": cut(users, page),
        "rules": cut(rules, page),
        "problems": {name: problem for name, (_, _, problem) in told.items() if problem},
        "masters": len(masters),
        "actions": ACTIONS,
        "kinds": KINDS,
        "states": STATES,
    }
    return Page("access.html", values)


Told = dict[str, tuple[list[UserInfo], list[AclInfo], str]]


def _users(told: Told) -> list[UserRow]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for broker, (users, _, _) in told.items():
        for one in users:
            found.setdefault((one.username or "", one.user_type or "", one.user_status or ""), []).append(broker)
    return [UserRow(*key, tuple(found[key])) for key in sorted(found)]


def _rules(told: Told) -> list[RuleRow]:
    found: dict[tuple[str, str, str, str, str], list[str]] = {}
    for broker, (_, acls, _) in told.items():
        for acl in acls:
            for entry in (one for policy in acl.policies or () for one in policy.entries or ()):
                actions, ips = ", ".join(entry.actions or ()), ", ".join(entry.source_ips or ())
                key = acl.subject or "", entry.resource or "", actions, entry.decision or "", ips
                found.setdefault(key, []).append(broker)
    return [RuleRow(*key, tuple(found[key])) for key in sorted(found)]


async def _addresses(visit: Visit) -> list[str]:
    """Return all brokers, including slaves. Raises BadInput if there are no brokers."""
    cluster = await visit.admin.cluster_info()
    found = [address for *_, address in brokers(cluster, sorted(cluster.cluster_addr_table or {}))]
    if not found:
        raise BadInput("No broker is running.")
    return found


def _user(visit: Visit) -> str:
    name = visit.needed("user", "The user's name")
    if not re.fullmatch(r"[\w.@-]{1,64}", name):
        raise BadInput(f"{name!r} is not a valid user name: use letters, digits and . _ - @.")
    return name


def _password(visit: Visit) -> str:
    password = visit.whole("password")
    if not password or len(password) > MOST_PASSWORD:
        raise BadInput(f"A password has 1 to {MOST_PASSWORD} characters.")
    return password


async def create_user(visit: Visit) -> Answer:
    """Create an account at every broker."""
    name = _user(visit)
    kind = "Super" if visit.text("super") else "Normal"
    user, addresses = UserInfo(name, _password(visit), kind, None), await _addresses(visit)
    for address in addresses:
        await create_user_at(visit.admin, address, user)
    visit.tell(f"User {name} is created at {len(addresses)} brokers.")
    return Redirect("/access")


async def change_user(visit: Visit) -> Answer:
    """Change an account's password, or enable or disable it."""
    name, status = _user(visit), visit.text("status")
    if status and status not in STATES:
        raise BadInput(f"{status!r} is not a state of a user.")
    password = _password(visit) if visit.whole("password") else None
    if not status and password is None:
        raise BadInput("Enter another password, or choose another state.")
    user, addresses = UserInfo(name, password, None, status or None), await _addresses(visit)
    for address in addresses:
        await update_user_at(visit.admin, address, user)
    visit.tell(f"User {name} is changed at {len(addresses)} brokers.")
    return Redirect("/access")


async def delete_user(visit: Visit) -> Answer:
    """Delete an account at every broker; the user has to type its name."""
    name = _user(visit)
    if visit.text("typed") != name:
        raise BadInput(f"Type the name {name} to delete the user.")
    for address in await _addresses(visit):
        await delete_user_at(visit.admin, address, name)
    visit.tell(f"User {name} is deleted.")
    return Redirect("/access")


async def grant(visit: Visit) -> Answer:
    """Allow or deny an account something."""
    name, kind, resource = _user(visit), visit.text("kind"), visit.needed("resource", "The resource")
    actions = [one for one in visit.every("action") if one in ACTIONS]
    if kind not in KINDS or not _NAME.fullmatch(resource):
        raise BadInput(f"{kind}:{resource} is not a resource: write it like Topic:Orders, Topic:Ord* or Group:*.")
    if not actions:
        raise BadInput("Choose the resource of the rule.")
    decision = "Deny" if visit.text("decision") == "Deny" else "Allow"
    ips = [one for one in re.split(r"[\s,]+", visit.text("ips")) if one]
    entry = PolicyEntryInfo(f"{kind}:{resource}", actions, ips or None, decision)
    acl, addresses = AclInfo(f"User:{name}", [PolicyInfo("Custom", [entry])]), await _addresses(visit)
    for address in addresses:
        is_new = await get_acl_at(visit.admin, address, f"User:{name}") is None
        await (create_acl_at if is_new else update_acl_at)(visit.admin, address, acl)
    visit.tell(f"{decision} {', '.join(actions)} on {kind}:{resource} for {name}, at {len(addresses)} brokers.")
    return Redirect("/access")


async def revoke(visit: Visit) -> Answer:
    """Delete a rule at every broker."""
    subject, resource = visit.needed("subject", "The subject"), visit.needed("resource", "The resource")
    for address in await _addresses(visit):
        await delete_acl_at(visit.admin, address, subject, resource)
    visit.tell(f"The rule of {subject} on {resource} is deleted.")
    return Redirect("/access")
