"""Members of a group that want different things, told once for each change."""

from __future__ import annotations

from typing import Any

import pytest

from twisted_mq.broker.clients import subscription_conflicts
from twisted_mq.broker.clients.consumer_manager import ConsumerManager
from twisted_mq.broker.clients.producer_manager import ClientChannelInfo
from twisted_mq.broker.clients.subscription_conflicts import DifferingSubscriptions
from twisted_mq.protocol.bodies import ConsumerData
from twisted_mq.protocol.messages.subscription import build_subscription


class Group:
    """Heartbeats of the members of group G, and the conflicts that were told."""

    def __init__(self) -> None:
        self.manager = ConsumerManager(lambda group: None)
        self.told: list[DifferingSubscriptions] = []
        self.manager.conflicts.on_conflict.append(self.told.append)

    def hear(self, client_id: str, model: str | None = "CLUSTERING", channel: Any = None, **expressions: str) -> None:
        subscriptions = [
            build_subscription(topic, text, "SQL92" if "=" in text else "TAG") for topic, text in expressions.items()
        ]
        data = ConsumerData(group_name="G", message_model=model, subscription_data_set=subscriptions)
        self.manager.register(data, ClientChannelInfo(channel or client_id, client_id, "JAVA", 479, 0))

    def wishes(self) -> list[dict[str, tuple[str, ...]]]:
        return [dict(conflict.wishes) for conflict in self.told]

    def now(self) -> list[str]:
        return [f"{conflict.topic}: {conflict}" for conflict in self.manager.conflicts.of_group("G")]


def test_member_that_leaves_its_model_out_consumes_by_clustering():
    """As the C++ client does; its heartbeat is compared with the others' like any."""
    group = Group()
    group.hear("c1", model=None, T="a")
    group.hear("c2", T="a")
    assert group.told == []
    group.hear("c3", model="BROADCASTING", T="a")
    assert group.wishes() == [{"BROADCASTING": ("c3",), "CLUSTERING": ("c1", "c2")}]


def test_members_that_agree_are_no_conflict_whatever_the_order_of_their_tags():
    group = Group()
    group.hear("c1", T="a || b", U="x = 1")
    group.hear("c2", T="b||a", U="x = 1")
    assert (group.told, group.now(), group.manager.conflicts.total) == ([], [], 0)


def test_a_conflict_is_told_once_and_again_when_it_changes():
    group = Group()
    group.hear("c1", T="a")
    for _ in range(3):
        group.hear("c2", T="b")
    assert group.wishes() == [{"a": ("c1",), "b": ("c2",)}]
    group.hear("c3", T="a")
    assert group.wishes()[1:] == [{"a": ("c1", "c3"), "b": ("c2",)}]
    assert (group.now(), group.manager.conflicts.total) == (["T: a by c1+c3, b by c2"], 2)


def test_another_topic_another_kind_of_expression_and_another_model_are_conflicts():
    group = Group()
    group.hear("c1", T="*", U="*")
    group.hear("c2", "BROADCASTING", T="x = 1")
    assert group.now() == [
        "(model): BROADCASTING by c2, CLUSTERING by c1",
        "T: * by c1, SQL92 x = 1 by c2",
        "U: (nothing) by c2, * by c1",
    ]


def test_a_conflict_ends_when_its_members_agree_or_leave():
    group = Group()
    group.hear("c1", T="a")
    group.hear("c2", T="b")
    group.hear("c2", T="a")
    assert group.now() == []
    group.hear("c2", T="b")
    list(group.manager.leave("c2"))
    assert (group.now(), group.manager.conflicts.total) == ([], 2)
    list(group.manager.leave("c1"))
    assert group.manager.groups == {}


def test_a_member_on_a_new_connection_is_still_that_member():
    group = Group()
    group.hear("c1", T="a", channel="old")
    group.hear("c2", T="b")
    group.hear("c1", T="a", channel="new")
    list(group.manager.leave("old"))
    assert group.now() == ["T: a by c1, b by c2"]


def test_so_many_topics_and_members_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_conflicts, "MOST_TOPICS", 3)
    monkeypatch.setattr(subscription_conflicts, "MOST_PAIRS", 8)
    monkeypatch.setattr(subscription_conflicts, "MOST_WISHES", 15)
    group = Group()
    group.hear("c1", T0="a", T1="a", T2="a", T3="a")
    group.hear("c2", T0="b", T1="b", T2="b", T3="b")
    assert [one.topic for one in group.manager.conflicts.of_group("G")] == ["T0", "T1"]
    group.hear("c3", T0="b", T1="a")
    assert [one.topic for one in group.manager.conflicts.of_group("G")] == ["T0"]
    group.hear("c4", T0="a", T1="a", T2="a")
    assert group.now() == []
    for _ in group.manager.leave("c2"):  # type: ignore[arg-type]
        pass
    assert [one.topic for one in group.manager.conflicts.of_group("G")] == ["T0"]
