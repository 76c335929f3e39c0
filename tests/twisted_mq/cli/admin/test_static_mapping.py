"""Plans of static topics: who gets which logical queue, and what does not fit together."""

from __future__ import annotations

import attrs
import pytest

from twisted_mq.cli.admin.static_mapping import block_round_up, checked, completed, created, detail_of, remapped
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import LogicQueueMappingItem

NOW = 1_000_000


def leaders(plan):
    """Logical queue -> broker and physical queue of its writes."""
    _, queues = checked("T", plan)
    return {queue_id: (pieces[-1].bname, pieces[-1].queue_id) for queue_id, pieces in sorted(queues.items())}


def settings(plan):
    """Broker -> physical queues, logical queues in all, epoch."""
    parts = {broker: (config.write_queue_nums, detail_of(broker, config)) for broker, config in plan.items()}
    return {broker: (count, detail.total_queues, detail.epoch) for broker, (count, detail) in sorted(parts.items())}


def test_new_queues_go_to_the_brokers_in_turn():
    plan = created("T", 5, ["a", "b"], {}, NOW)
    assert leaders(plan) == {0: ("a", 0), 1: ("b", 0), 2: ("a", 1), 3: ("b", 1), 4: ("a", 2)}
    assert settings(plan) == {"a": (3, 5, NOW), "b": (2, 5, NOW)}


def test_a_topic_that_grows_keeps_its_queues_and_begins_a_later_epoch():
    plan = created("T", 4, ["a", "b"], created("T", 2, ["a"], {}, NOW), NOW)
    assert leaders(plan) == {0: ("a", 0), 1: ("a", 1), 2: ("b", 0), 3: ("b", 1)}
    assert settings(plan) == {"a": (2, 4, NOW + 1000), "b": (2, 4, NOW + 1000)}


@pytest.mark.parametrize("count", [1, 2])
def test_a_topic_does_not_shrink(count):
    with pytest.raises(CliError, match=f"only grows: {count} queues are wanted, it has 2"):
        created("T", count, ["a"], created("T", 2, ["a"], {}, NOW), NOW)


def test_a_broker_with_queues_stays_among_the_targets():
    with pytest.raises(CliError, match="The existed broker a does not in target brokers"):
        created("T", 4, ["b"], created("T", 2, ["a"], {}, NOW), NOW)


def test_the_other_brokers_of_the_cluster_learn_of_the_topic():
    plan = completed("T", created("T", 2, ["a"], {}, NOW), ["a", "b"])
    assert settings(plan) == {"a": (2, 2, NOW), "b": (0, 2, NOW)}
    assert detail_of("b", plan["b"]).hosted_queues == {}


def test_queues_move_until_the_targets_share_them():
    moved = remapped("T", created("T", 4, ["a"], {}, NOW), ["a", "b"], NOW)
    assert leaders(moved.plan) == {0: ("a", 0), 1: ("a", 1), 2: ("b", 0), 3: ("b", 1)}
    assert (moved.map_in, moved.map_out) == ({"b"}, {"a"})
    pieces = detail_of("a", moved.plan["a"]).hosted_queues[2]
    assert pieces == detail_of("b", moved.plan["b"]).hosted_queues[2]
    assert [(piece.gen, piece.bname, piece.queue_id, piece.logic_offset) for piece in pieces] == [
        (0, "a", 2, 0),
        (1, "b", 0, -1),
    ]


def test_a_broker_that_is_no_target_loses_all():
    moved = remapped("T", created("T", 3, ["a", "b"], {}, NOW), ["b", "c"], NOW)
    assert leaders(moved.plan) == {0: ("b", 1), 1: ("b", 0), 2: ("c", 0)}
    assert (moved.map_in, moved.map_out) == ({"b", "c"}, {"a"})


def test_where_all_is_even_nothing_moves():
    moved = remapped("T", created("T", 4, ["a", "b"], {}, NOW), ["a", "b"], NOW)
    assert (moved.map_in, moved.map_out) == (frozenset(), frozenset())


def changed(**members):
    """A mapping of one broker with other members in its detail."""
    plan = created("T", 2, ["a"], {}, NOW)
    return {"a": attrs.evolve(plan["a"], mapping_detail=attrs.evolve(detail_of("a", plan["a"]), **members))}


def piece(**members):
    return LogicQueueMappingItem(**{"bname": "a", "queue_id": 0, **members})


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ({"a": attrs.evolve(changed()["a"], mapping_detail=None)}, "should not be null in broker a"),
        (changed(bname="z"), "The broker name is not equal a != z"),
        (changed(topic="U"), "The topic name is not match for broker a"),
        (changed(dirty=True), "The mapping info is dirty in broker a"),
        (changed(total_queues=3), "does not match the real hosted queues 3 != 2"),
        ({**changed(), "b": created("T", 2, ["b"], {}, NOW + 5)["b"]}, "epoch does not match"),
        ({**changed(), "b": created("T", 2, ["b"], {}, NOW)["b"]}, "The queue id is duplicated in broker b"),
        (changed(hosted_queues={0: [piece()], 1: [piece()]}), "share the same physical queue a-0"),
        (changed(hosted_queues={0: [piece()], 1: [piece(queue_id=7)]}), "physical queue a-7 does not exist"),
        (changed(hosted_queues={0: [piece()], 1: []}), "has no pieces"),
        (changed(hosted_queues={0: [piece(start_offset=-1)]}), "negative field"),
        (
            changed(hosted_queues={0: [piece(end_offset=50), piece(gen=1, queue_id=1, logic_offset=50)]}),
            "do not follow each other",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(plan, reason):
    with pytest.raises(CliError, match=reason):
        checked("T", plan)


@pytest.mark.parametrize(
    ("offset", "begin"), [(0, 10_000), (4_999, 10_000), (5_000, 20_000), (9_999, 20_000), (10_000, 20_000)]
)
def test_a_moved_queue_goes_on_behind_its_end_with_room(offset, begin):
    assert block_round_up(offset, 10_000) == begin
