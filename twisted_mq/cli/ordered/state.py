"""Shows an ordered topic and its groups as rows and as JSON."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from twisted_mq.admin.ordered_states import Leader, TopicState, UnitState
from twisted_mq.client.ordered.group_states import GroupState
from twisted_mq.protocol.text.json_value import Json

COLUMNS = ("queue", "epoch", "head", "send", "consume (backlog)", "sender", "consumers", "state")
GROUP_COLUMNS = ("group", "master", "slave", "state")


def unit_row(state: TopicState, unit: UnitState) -> tuple[object, ...]:
    """Return a row under COLUMNS."""
    lists = unit.lists
    consume = (f"{term.group}:{term.epoch} ({_count(unit.backlog.get(term.group))})" for term in lists.consume)
    return (
        unit.unit,
        lists.epoch,
        lists.head,
        " ".join(lists.send),
        " ".join(consume),
        _who(unit.producers),
        _who(unit.consumers),
        "; ".join(state.blocks(unit)) or "ok",
    )


def _count(backlog: int | None) -> str:
    return "?" if backlog is None else str(backlog)


def _who(leaders: Iterable[Leader]) -> str:
    return " ".join(f"{leader.group}={leader.client or '-'}" for leader in leaders)


def group_row(state: GroupState) -> tuple[object, ...]:
    """Return a row under GROUP_COLUMNS."""
    addresses = {broker_id: member.address for broker_id, member in state.members.items()}
    slaves = " ".join(address for broker_id, address in sorted(addresses.items()) if broker_id)
    return state.group, addresses.get(0), slaves or None, state.obstacle() or "ok"


def state_json(state: TopicState) -> dict[str, Json]:
    """Return everything."""
    return {
        "topic": state.declared.topic,
        "queues": state.declared.queues,
        "together": state.declared.together,
        "groups": [_group_json(state.groups[group]) for group in state.groups],
        "units": [_unit_json(state, unit) for unit in state.units],
    }


def _group_json(state: GroupState) -> dict[str, Json]:
    members: dict[str, Json] = {str(one): member.address for one, member in sorted(state.members.items())}
    return {"group": state.group, "retired": state.retired, "members": members, "obstacle": state.obstacle()}


def _unit_json(state: TopicState, unit: UnitState) -> dict[str, Json]:
    consume: list[Json] = [
        {"group": term.group, "epoch": term.epoch, "backlog": unit.backlog.get(term.group)}
        for term in unit.lists.consume
    ]
    return {
        "unit": unit.unit,
        "epoch": unit.lists.epoch,
        "head": unit.lists.head,
        "send": list(unit.lists.send),
        "consume": consume,
        "producers": [attrs.asdict(leader) for leader in unit.producers],
        "consumers": [attrs.asdict(leader) for leader in unit.consumers],
        "deletedUnconsumed": dict(unit.deleted),
        "blocked": list(state.blocks(unit)),
    }
