"""The coordinator's view of broker groups; describes why a group accepts no sends and what would resolve it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from twisted_mq.coordination.interfaces import ICoordinator
from twisted_mq.ordering.documents import BrokerMember, DocumentFault, GroupWish, decode_group, decode_member
from twisted_mq.ordering.health import group_fault
from twisted_mq.ordering.lists import Lists
from twisted_mq.ordering.paths import group_path, member_path, members_path


@attrs.frozen
class GroupState:
    """A broker group. `members` are its living brokers by id; `fault` is set if a document is inconsistent."""

    group: str
    members: Mapping[int, BrokerMember] = attrs.field(factory=dict)
    retired: bool = False
    fault: DocumentFault | None = None

    def obstacle(self) -> str | None:
        """Return why the group is not well, and what to do about it; None if it is."""
        if self.fault is not None:
            return f"{self.group}: {self.fault}; correct the node by hand"
        fault = group_fault(self.members, GroupWish(self.retired))
        return None if fault is None else f"{self.group}: {fault}"

    def no_sends(self, lists: Lists) -> str | None:
        """Return why the group does not accept sends of a unit; None if it does."""
        term = next((term for term in lists.consume if term.group == self.group), None)
        obstacle = self.obstacle()
        if obstacle is None and term is not None and lists.head != self.group:
            return (
                f"{self.group} still has messages of epoch {term.epoch}, it joins again after all its consumer groups have "
                "consumed them"
            )
        return obstacle


async def read_groups(coordinator: ICoordinator, groups: Iterable[str]) -> dict[str, GroupState]:
    """Return the states of these groups. Fails as reads of the coordinator do."""
    return {group: await _read_group(coordinator, group) for group in groups}


async def _read_group(coordinator: ICoordinator, group: str) -> GroupState:
    members: dict[int, BrokerMember] = {}
    try:
        for name in await coordinator.children(members_path(group)):
            path = member_path(group, int(name)) if name.isdecimal() else f"{members_path(group)}/{name}"
            node = await coordinator.read(path)
            if node is not None and name.isdecimal():
                members[int(name)] = decode_member(path, node.data)
        wish = await coordinator.read(group_path(group))
        retired = wish is not None and decode_group(group_path(group), wish.data).retired
    except DocumentFault as fault:
        return GroupState(group, members, fault=fault)
    return GroupState(group, members, retired)


def reasons_without_head(lists: Lists, states: Iterable[GroupState]) -> tuple[str, ...]:
    """Return for each group why it does not accept the sends of a unit."""
    return tuple(state.no_sends(lists) or f"{state.group} is healthy; its master joins soon" for state in states)
