"""Divides queues by the machine rooms of brokers and consumers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.routing.allocate_strategies import AllocateStrategy

Placed = TypeVar("Placed")


def allocate_by_machine_room(rooms: Collection[str]) -> AllocateStrategy:
    """Take the queues of brokers named "room@name" in these rooms (Apache: AllocateMessageQueueByMachineRoom).

    Members get equal shares of neighbouring queues. The first members get one more each, taken from the end.
    """
    wanted = frozenset(rooms)

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        near = [queue for queue in queues if _room_of(queue.broker_name) in wanted]
        share, rest = divmod(len(near), len(client_ids))
        index = client_ids.index(client_id)
        last = [near[index + share * len(client_ids)]] if index < rest else []
        return near[index * share : (index + 1) * share] + last

    return allocate


def _room_of(broker_name: str) -> str | None:
    """Return the part before the only "@"; None if the name does not have that form (as String.split sees it)."""
    parts = broker_name.rstrip("@").split("@")
    return parts[0] if len(parts) == 2 else None


def allocate_machine_room_nearby(
    strategy: AllocateStrategy, room_of_queue: Callable[[MessageQueue], str], room_of_client: Callable[[str], str]
) -> AllocateStrategy:
    """Give queues to the consumers of their room, by `strategy`; rooms without a consumer share theirs among all.

    Apache: AllocateMachineRoomNearby. Raises ValueError if a queue or a client is in no room.
    """

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        queues_in, clients_in = _by_room(queues, room_of_queue), _by_room(client_ids, room_of_client)
        own = room_of_client(client_id)
        found = strategy(client_id, queues_in[own], clients_in[own]) if own in queues_in else []
        for room in sorted(queues_in.keys() - clients_in.keys()):
            found = found + strategy(client_id, queues_in[room], client_ids)
        return found

    return allocate


def _by_room(placed: Sequence[Placed], room_of: Callable[[Placed], str]) -> dict[str, list[Placed]]:
    rooms: dict[str, list[Placed]] = {}
    for one in placed:
        room = room_of(one)
        if not room:
            raise ValueError(f"{one} does not belong to a machine room")
        rooms.setdefault(room, []).append(one)
    return rooms
