"""Why a broker group must not take sends, from what its brokers and its operators say in the coordinator. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.ordering.documents import GroupWish, Member

MASTER, SLAVE = 0, 1


def group_fault(members: Mapping[int, Member], wish: GroupWish) -> str | None:
    """The first thing that keeps it from it; None for a group that is well. `members` are its living brokers by id."""
    if wish.retired:
        return "it is retired: mq order restore takes it back"
    for broker_id, name in ((MASTER, "master"), (SLAVE, "slave")):
        if broker_id not in members:
            return f"its {name} (brokerId {broker_id}) is not connected to the coordinator"
    strangers = sorted(members.keys() - {MASTER, SLAVE})
    if strangers:
        return f"it has a broker with brokerId {strangers[0]}: a group is a master (0) and exactly one slave (1)"
    return members[MASTER].fault or members[SLAVE].fault
