"""The part of `Admin` that shows clusters and brokers, and manages accounts and their rights."""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.admin.access import (
    acls_at,
    create_acl_at,
    create_user_at,
    delete_acl_at,
    delete_user_at,
    get_acl_at,
    update_acl_at,
    users_at,
)
from twisted_mq.admin.calls import brokers
from twisted_mq.admin.figures import BrokerFigures, all_figures, settings_of
from twisted_mq.admin.member import AdminMember, answers
from twisted_mq.admin.results import Right, User
from twisted_mq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo


class ClusterAdmin(AdminMember):
    """The methods of `Admin` for clusters, brokers, accounts and rights."""

    @answers
    async def list_clusters(self) -> dict[str, list[str]]:
        """Return each cluster with the names of its brokers, sorted."""
        table = (await self._calls.cluster_info()).cluster_addr_table or {}
        return {name: sorted(table[name]) for name in sorted(table)}

    @answers
    async def list_brokers(self) -> list[BrokerFigures]:
        """Return every broker, slaves too, with its metrics, sorted by cluster, name and id.

        A broker that does not answer has `figures` None and the reason as `problem`.
        """
        return await all_figures(self._calls)

    @answers
    async def broker_settings(self, address: str) -> dict[str, str]:
        """Return the settings of the broker at host:port, by key."""
        return await settings_of(self._calls, address)

    @answers
    async def create_user(
        self, name: str, password: str, *, super_user: bool = False, cluster: str | None = None
    ) -> None:
        """Create an account at every broker of a cluster. A super user may do everything."""
        user = UserInfo(name, password, "Super" if super_user else "Normal", None)
        for address in await self._addresses(cluster):
            await create_user_at(self._calls, address, user)

    @answers
    async def delete_user(self, name: str, *, cluster: str | None = None) -> None:
        """Delete an account at every broker of a cluster."""
        for address in await self._addresses(cluster):
            await delete_user_at(self._calls, address, name)

    @answers
    async def list_users(self, *, cluster: str | None = None) -> list[User]:
        """Return the accounts that any master of a cluster has, sorted by name."""
        found: dict[str, User] = {}
        for address in (await self._masters(cluster)).values():
            for one in await users_at(self._calls, address, None):
                name = one.username or ""
                found.setdefault(name, User(name, one.user_type or "", one.user_status or ""))
        return [found[name] for name in sorted(found)]

    @answers
    async def grant(
        self,
        user: str,
        resource: str,
        actions: Sequence[str],
        *,
        allow: bool = True,
        source_ips: Sequence[str] = (),
        cluster: str | None = None,
    ) -> None:
        """Allow an account actions on a resource, at every broker of a cluster; with `allow=False`, forbid them.

        `resource` is for example "Topic:Orders", "Topic:Ord*" or "Group:audit"; `actions` are Pub, Sub, Create, Update,
        Delete, Get, List or All.
        """
        entry = PolicyEntryInfo(resource, list(actions), list(source_ips) or None, "Allow" if allow else "Deny")
        acl = AclInfo(_subject(user), [PolicyInfo(None, [entry])])
        for address in await self._addresses(cluster):
            is_new = await get_acl_at(self._calls, address, _subject(user)) is None
            await (create_acl_at if is_new else update_acl_at)(self._calls, address, acl)

    @answers
    async def revoke(self, user: str, resource: str | None = None, *, cluster: str | None = None) -> None:
        """Remove the rules of an account on a resource, or all of them, at every broker of a cluster."""
        for address in await self._addresses(cluster):
            await delete_acl_at(self._calls, address, _subject(user), resource)

    @answers
    async def list_rights(self, user: str | None = None, *, cluster: str | None = None) -> list[Right]:
        """Return the rules that any master of a cluster has: of one account, or all."""
        subject = None if user is None else _subject(user)
        found: dict[Right, None] = {}
        for address in (await self._masters(cluster)).values():
            for acl in await acls_at(self._calls, address, subject, None):
                if subject in (None, acl.subject):
                    found.update(dict.fromkeys(_rights(acl)))
        return list(found)

    async def _addresses(self, cluster: str | None) -> list[str]:
        """Return the addresses of all brokers of the cluster, slaves too."""
        masters = await self._masters(cluster)
        info = await self._calls.cluster_info()
        every = brokers(info, sorted(info.cluster_addr_table or {}))
        return [address for _, name, _, address in every if name in masters]


def _subject(user: str) -> str:
    return f"User:{user}"


def _rights(acl: AclInfo) -> list[Right]:
    return [
        Right(
            subject=acl.subject or "",
            resource=entry.resource or "",
            actions=tuple(entry.actions or ()),
            source_ips=tuple(entry.source_ips or ()),
            allowed=(entry.decision or "").lower() == "allow",
        )
        for policy in acl.policies or ()
        for entry in policy.entries or ()
    ]
