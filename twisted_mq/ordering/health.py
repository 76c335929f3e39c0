"""Decides why a broker group must not take sends, from the nodes of its brokers and its operators. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.ordering.documents import BrokerMember, GroupWish

MASTER, SLAVE = 0, 1


def group_fault(members: Mapping[int, BrokerMember], wish: GroupWish) -> str | None:
    """Return the first fault; None for a healthy group. `members` are its living brokers by id."""
    if wish.retired:
        return "it is retired: mq order restore reactivates it"
    for broker_id, name in ((MASTER, "master"), (SLAVE, "slave")):
        if broker_id not in members:
            return f"its {name} (brokerId {broker_id}) is not connected to the coordinator"
    strangers = sorted(members.keys() - {MASTER, SLAVE})
    if strangers:
        return f"it has a broker with brokerId {strangers[0]}: a group must have a master (0) and exactly one slave (1)"
    return members[MASTER].fault or members[SLAVE].fault
