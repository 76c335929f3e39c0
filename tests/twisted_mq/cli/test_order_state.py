"""Output of `mq order show` for a blocked queue: the reason, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from twisted_mq.admin.ordered_states import Leader, TopicState, UnitState
from twisted_mq.client.ordered.group_states import GroupState
from twisted_mq.ordering.documents import BrokerMember, DocumentFault
from twisted_mq.ordering.lists import Lists, OrderedTopic, Term

MASTER, SLAVE = BrokerMember("host:1"), BrokerMember("host:2")
WELL = {0: MASTER, 1: SLAVE}
LAGS = BrokerMember("host:1", "its slave does not keep up")
ACTIVE, IDLE = Leader("audit", "client", 3, 1), Leader("audit")
A, B = Lists(1, ("a", "b"), (Term("a", 1),)), Lists(2, ("b",), (Term("a", 1), Term("b", 2)))
NOBODY = Lists(1, (), (Term("a", 1),))
NOTHING = Lists(1)
NO_HEAD_OF_B = "; b is healthy; its master joins soon"


def blocks(
    lists: Lists, a: dict[int, BrokerMember] | GroupState, *consumers: Leader, problem: str | None = None
) -> Any:
    """Return the reasons for a topic on the groups a and b, of which b is healthy."""
    group = a if isinstance(a, GroupState) else GroupState("a", a)
    unit = UnitState("0", lists, problem, consumers=consumers)
    return TopicState(OrderedTopic("T", 1, ("a", "b")), {"a": group, "b": GroupState("b", WELL)}, (unit,)).blocks(unit)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (blocks(A, WELL, ACTIVE), []),
        (blocks(A, WELL), []),
        (blocks(B, WELL, ACTIVE), []),
        (blocks(B, {1: SLAVE}, ACTIVE), []),
        (
            blocks(Lists(), WELL, problem="/topics/T/0: no JSON; put it right"),
            ["blocked: /topics/T/0: no JSON; put it right"],
        ),
        (
            blocks(NOTHING, {0: MASTER}),
            [f"senders wait: a: its slave (brokerId 1) is not connected to the coordinator{NO_HEAD_OF_B}"],
        ),
        (
            blocks(NOTHING, {1: SLAVE}),
            [f"senders wait: a: its master (brokerId 0) is not connected to the coordinator{NO_HEAD_OF_B}"],
        ),
        (
            blocks(NOTHING, WELL | {2: SLAVE}),
            [
                "senders wait: a: it has a broker with brokerId 2: a group must have a master (0) and exactly one slave "
                f"(1){NO_HEAD_OF_B}"
            ],
        ),
        (blocks(NOTHING, {0: LAGS, 1: SLAVE}), [f"senders wait: a: its slave does not keep up{NO_HEAD_OF_B}"]),
        (
            blocks(NOTHING, GroupState("a", WELL, retired=True)),
            [f"senders wait: a: it is retired: mq order restore reactivates it{NO_HEAD_OF_B}"],
        ),
        (
            blocks(NOTHING, GroupState("a", fault=DocumentFault("/groups/a", "retired", 1, "must be true or false"))),
            [f"senders wait: a: /groups/a: retired: must be true or false, got 1; correct the node by hand{NO_HEAD_OF_B}"],
        ),
        (
            blocks(NOBODY, WELL, ACTIVE),
            [
                "senders wait: a still has messages of epoch 1, it joins again after all its consumer groups have consumed "
                f"them{NO_HEAD_OF_B}"
            ],
        ),
        (blocks(B, {}, ACTIVE), ["consumers wait: no broker of a is running; start one of them"]),
        (blocks(B, WELL, IDLE), ["a is held by groups without a running consumer: audit; start them"]),
        (blocks(B, WELL), ["a waits for its first consumer group; start a consumer"]),
    ],
    ids=["takes sends", "nobody consumes yet", "two terms", "the slave serves", "hand", "no slave", "no master",
         "a third broker", "slow slave", "retired", "wish by hand", "backlog", "no broker", "idle group", "no group"],
)  # fmt: skip
def test_each_state_says_why_and_what_frees_it(found: list[str], says: list[str]) -> None:
    assert found == says


RESTARTED = BrokerMember("host:1", complete=False)
NO_MASTER_OF_A = "a: its master (brokerId 0) is not connected to the coordinator"


@pytest.mark.parametrize(
    ("unit", "a", "b", "says"),
    [
        (UnitState("0", A), {}, WELL, f"senders wait: {NO_MASTER_OF_A}; b takes over within one session timeout"),
        (
            UnitState("0", A), {1: SLAVE}, {0: MASTER},
            f"senders wait: {NO_MASTER_OF_A}, and no other group is healthy; start the missing brokers",
        ),
        (
            UnitState("0", A), {}, {},
            f"senders wait: {NO_MASTER_OF_A}, and no broker is running to hand over; start the brokers",
        ),
        (
            UnitState("0", A, unreached="10.0.0.9@1"), WELL, WELL,
            "senders wait: 10.0.0.9@1, the active producer, cannot reach the master of a; b takes over, within 10 session "
            "timeouts if a was reported before",
        ),
        (
            UnitState("0", A, unreached="10.0.0.9@1"), WELL, {},
            "senders wait: 10.0.0.9@1, the active producer, cannot reach the master of a, and no other group is healthy; start"
            " the missing brokers",
        ),
        (
            UnitState("0", B, consumers=(ACTIVE,)), {0: RESTARTED}, WELL,
            "epoch 1 of a cannot end, because broker 0 may not have all its messages: it restarted, and is not yet in sync "
            "with its partner; start its slave, or check replication",
        ),
        (
            UnitState("0", B, consumers=(ACTIVE,)), {1: BrokerMember("host:2", "its slave restarted", complete=False)}, WELL,
            "epoch 1 of a cannot end, because broker 1 may not have all its messages: its slave restarted; start its master, "
            "or check "
            "replication",
        ),
        (
            UnitState("0", Lists(3, ("a",), (Term("a", 1), Term("b", 2), Term("c", 3))), consumers=(ACTIVE,)), WELL, {},
            "consumers will wait for epoch 2: no broker of b is running; start one of them",
        ),
        (
            UnitState("0", A, consumers=(IDLE,), waiting={"audit": 7}), WELL, WELL,
            "consumers wait: audit has no running consumer for 7 messages; start one",
        ),
        (
            UnitState("0", A, consumers=(ACTIVE,), cut_off={"audit": "client"}), WELL, WELL,
            "consumers wait: client, the active consumer of audit, has no connection to a broker of a; check the network"
            " between them",
        ),
        (
            UnitState("0", A, consumers=(ACTIVE,), backlog={"a": None}), WELL, WELL,
            "the backlog of a is not known, because no broker of it reports it; check its log",
        ),
    ],
    ids=["head is lost", "nobody takes over", "nobody hands over", "out of reach", "out of reach alone", "restarted master",
         "restarted slave", "later group",
         "idle group of the head", "cut off", "backlog not known"],
)  # fmt: skip
def test_states_in_which_something_waits_are_never_ok(
    unit: UnitState, a: dict[int, BrokerMember], b: dict[int, BrokerMember], says: str
) -> None:
    groups = {"a": GroupState("a", a), "b": GroupState("b", b)} | (
        {"c": GroupState("c", WELL)} if unit.lists.epoch == 3 else {}
    )
    assert says in TopicState(OrderedTopic("T", 1, ("a", "b")), groups, (unit,)).blocks(unit)


def test_group_that_has_consumed_all_may_stop() -> None:
    unit = UnitState("0", A, consumers=(IDLE,), waiting={"audit": 0})
    groups = {group: GroupState(group, WELL) for group in "ab"}
    assert TopicState(OrderedTopic("T", 1, ("a", "b")), groups, (unit,)).blocks(unit) == []


def test_messages_that_a_full_disk_deleted_and_brokers_that_do_not_answer_are_never_ok() -> None:
    unit = UnitState("0", A, consumers=(ACTIVE,), deleted={"a": 685})
    groups = {group: GroupState(group, WELL) for group in "ab"}
    state = TopicState(OrderedTopic("T", 1, ("a", "b")), groups, (unit,), frozenset({"host:2"}))
    deleted, unknown = state.blocks(unit)
    assert deleted.startswith(
        "a deleted 685 messages that were not consumed, because its disk was full; its log lists them"
    )
    assert unknown.startswith("not known: broker host:2 is connected to the coordinator, but does not answer")
