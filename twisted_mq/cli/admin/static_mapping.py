"""Plans which broker gets which logical queue of a static topic: plans to create queues and to move them
(TopicQueueMappingUtils).

A plan has each broker's part of the mapping, by its name. Nothing here asks or changes a broker.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import LogicQueueMappingItem, TopicConfigAndQueueMapping, TopicQueueMappingDetail

Plan: TypeAlias = Mapping[str, TopicConfigAndQueueMapping]
Pieces: TypeAlias = Sequence[LogicQueueMappingItem]
"""The pieces of a logical queue, oldest first; the last one takes the writes."""

EPOCH_STEP_MS = 1000
"""The least difference between the epochs of one plan and the next."""
OPEN = -1
"""The logical offset of a piece whose begin is not known yet."""


@attrs.frozen
class Remapping:
    """A plan that moves queues, with the brokers that get and that lose some."""

    plan: Plan
    map_in: frozenset[str]
    map_out: frozenset[str]


def detail_of(broker: str, config: TopicConfigAndQueueMapping) -> TopicQueueMappingDetail:
    """Return a broker's part of the mapping. Raises CliError for a topic that is not static."""
    if config.mapping_detail is None:
        raise CliError(f"Mapping info should not be null in broker {broker}")
    return config.mapping_detail


def checked(topic: str, plan: Plan) -> tuple[int, dict[int, Pieces]]:
    """Return epoch and logical queues of a plan that fits together. Raises CliError for any other."""
    details = {broker: detail_of(broker, config) for broker, config in plan.items()}
    for broker, detail in details.items():
        _check_names(topic, broker, detail)
    _check_same(details, "scope", "epoch", "total_queues")
    queues = _logical_queues(details)
    total = next(iter(details.values())).total_queues if details else 0
    if sorted(queues) != [*range(total)]:
        raise CliError(
            f"The total queue number in config does not match the real hosted queues {total} != {len(queues)}"
        )
    _check_physical(plan, queues)
    return next((detail.epoch for detail in details.values()), 0), queues


def _check_names(topic: str, broker: str, detail: TopicQueueMappingDetail) -> None:
    if detail.bname != broker:
        raise CliError(f"The broker name is not equal {broker} != {detail.bname}")
    if detail.topic != topic:
        raise CliError(f"The topic name is not match for broker {broker}")
    if detail.dirty:
        raise CliError(f"The mapping info is dirty in broker {broker}")


def _check_same(details: Mapping[str, TopicQueueMappingDetail], *names: str) -> None:
    for name in names:
        values = {getattr(detail, name) for detail in details.values()}
        if len(values) > 1:
            raise CliError(f"{name} does not match between brokers: {', '.join(map(str, sorted(values)))}")


def _logical_queues(details: Mapping[str, TopicQueueMappingDetail]) -> dict[int, Pieces]:
    """Return the pieces of each logical queue, from the broker that takes its writes."""
    queues: dict[int, Pieces] = {}
    for broker, detail in sorted(details.items()):
        for queue_id, pieces in detail.hosted_queues.items():
            _check_pieces(queue_id, pieces)
            if pieces[-1].bname != broker:
                continue
            if queue_id in queues:
                raise CliError(f"The queue id is duplicated in broker {broker}: {queue_id}")
            queues[queue_id] = pieces
    return queues


def _check_pieces(queue_id: int, pieces: Pieces) -> None:
    """Check that generations and offsets rise, and that only the last piece is open."""
    if not pieces or any(min(piece.start_offset, piece.gen, piece.queue_id) < 0 for piece in pieces):
        raise CliError(f"logical queue {queue_id} has no pieces, or one with a negative field")
    for older, newer in itertools.pairwise(pieces):
        rises = newer.logic_offset == OPEN or max(older.logic_offset, last_offset(older)) < newer.logic_offset
        if older.gen >= newer.gen or older.logic_offset < 0 or not rises:
            raise CliError(f"the pieces of logical queue {queue_id} do not follow each other")


def last_offset(piece: LogicQueueMappingItem) -> int:
    """Return the end of a closed piece, as an offset of the logical queue; its begin while it is open."""
    return piece.logic_offset + max(0, piece.end_offset - piece.start_offset)


def _check_physical(plan: Plan, queues: Mapping[int, Pieces]) -> None:
    """Check that no physical queue is used twice, and that each one exists."""
    places = Counter((piece.bname, piece.queue_id) for pieces in queues.values() for piece in pieces)
    shared = [place for place, count in places.items() if count > 1]
    if shared:
        raise CliError(f"Topic queues share the same physical queue {shared[0][0]}-{shared[0][1]}")
    for broker, queue_id in places:
        config = plan.get(broker or "")
        if config is None or not queue_id < config.write_queue_nums <= config.read_queue_nums:
            raise CliError(f"the physical queue {broker}-{queue_id} does not exist")


def created(topic: str, total: int, targets: Collection[str], plan: Plan, now_ms: int) -> Plan:
    """Return the plan with more logical queues, the new ones where the fewest are. Raises CliError."""
    epoch, queues = checked(topic, plan)
    homeless = [broker for broker, config in plan.items() if detail_of(broker, config).hosted_queues]
    if not set(homeless) <= set(targets):
        raise CliError(f"The existed broker {homeless[0]} does not in target brokers")
    if total <= len(queues):
        raise CliError(f"a static topic only grows: {total} queues are wanted, it has {len(queues)}")
    counts = _leaders(queues) | {broker: 0 for broker in targets if broker not in _leaders(queues)}
    result = dict(plan)
    for queue_id in range(len(queues), total):
        broker = min(counts, key=lambda name: (counts[name], name))
        counts[broker] += 1
        result[broker] = _with_piece(topic, result, broker, queue_id, ())
    return _stamped(topic, result, total, max(epoch + EPOCH_STEP_MS, now_ms))


def _leaders(queues: Mapping[int, Pieces]) -> dict[str, int]:
    """Return how many logical queues' writes each broker takes."""
    return dict(Counter(pieces[-1].bname or "" for pieces in queues.values()))


def _with_piece(topic: str, plan: Plan, broker: str, queue_id: int, older: Pieces) -> TopicConfigAndQueueMapping:
    """Return a broker's settings with one more physical queue, which continues a logical one."""
    config = plan.get(broker) or _without_queues(topic, broker)
    physical = config.write_queue_nums
    gen, logic_offset = (older[-1].gen + 1, OPEN) if older else (0, 0)
    piece = LogicQueueMappingItem(gen=gen, queue_id=physical, bname=broker, logic_offset=logic_offset)
    grown = attrs.evolve(config, write_queue_nums=physical + 1, read_queue_nums=config.read_queue_nums + 1)
    return with_pieces(broker, grown, queue_id, [*older, piece])


def with_pieces(
    broker: str, config: TopicConfigAndQueueMapping, queue_id: int, pieces: Pieces
) -> TopicConfigAndQueueMapping:
    """Return a broker's settings with other pieces of one logical queue."""
    detail = detail_of(broker, config)
    hosted = {**detail.hosted_queues, queue_id: list(pieces)}
    return attrs.evolve(config, mapping_detail=attrs.evolve(detail, hosted_queues=hosted))


def _without_queues(topic: str, broker: str) -> TopicConfigAndQueueMapping:
    detail = TopicQueueMappingDetail(topic=topic, bname=broker)
    return TopicConfigAndQueueMapping(topic_name=topic, read_queue_nums=0, write_queue_nums=0, mapping_detail=detail)


def _stamped(topic: str, plan: Plan, total: int, epoch: int) -> Plan:
    """Return the plan with a new epoch everywhere. Raises CliError if it does not fit together."""
    result = _stamp(plan, total, epoch)
    checked(topic, result)
    return result


def _stamp(plan: Plan, total: int, epoch: int) -> Plan:
    return {
        broker: attrs.evolve(
            config, mapping_detail=attrs.evolve(detail_of(broker, config), epoch=epoch, total_queues=total)
        )
        for broker, config in plan.items()
    }


def completed(topic: str, plan: Plan, brokers: Iterable[str]) -> Plan:
    """Return the plan with the other brokers of the clusters, which learn of the topic and get no queue."""
    one = next(iter(plan.values()))
    known = detail_of("", one)
    others = {broker: _without_queues(topic, broker) for broker in brokers if broker not in plan}
    return {**plan, **_stamp(others, known.total_queues, known.epoch)}


def remapped(topic: str, plan: Plan, targets: Collection[str], now_ms: int) -> Remapping:
    """Move logical queues until the targets have all, evenly; a broker only gets or only loses some. Raises CliError."""
    epoch, queues = checked(topic, plan)
    moves = _moves(queues, targets)
    result = dict(plan)
    for queue_id, broker in sorted(moves.items()):
        older, loser = queues[queue_id], queues[queue_id][-1].bname or ""
        result[broker] = _with_piece(topic, result, broker, queue_id, older)
        pieces = detail_of(broker, result[broker]).hosted_queues[queue_id]
        result[loser] = with_pieces(loser, result[loser], queue_id, pieces)
    losers = frozenset(queues[queue_id][-1].bname or "" for queue_id in moves)
    stamped = _stamped(topic, result, len(queues), max(epoch + EPOCH_STEP_MS, now_ms))
    return Remapping(stamped, frozenset(moves.values()), losers)


def _moves(queues: Mapping[int, Pieces], targets: Collection[str]) -> dict[int, str]:
    """Return logical queue -> the broker that gets it; queues stay if they can."""
    before = _leaders(queues)
    wanted = dict.fromkeys(targets, 0)
    for _ in queues:  # a broker that had more keeps more
        wanted[min(wanted, key=lambda name: (wanted[name], -before.get(name, 0), name))] += 1
    waiting: list[int] = []
    for queue_id in sorted(queues):
        leader = queues[queue_id][-1].bname or ""
        if wanted.get(leader, 0) > 0:
            wanted[leader] -= 1
        else:
            waiting.append(queue_id)
    getting = [broker for broker in sorted(wanted) for _ in range(wanted[broker])]
    return dict(zip(waiting, getting, strict=True))


def block_round_up(offset: int, block: int) -> int:
    """Return the begin of a block after an offset, with half a block of room at the least (blockSeqRoundUp)."""
    full, left = divmod(offset, block)
    return (full + (1 if left < block / 2 else 2)) * block
