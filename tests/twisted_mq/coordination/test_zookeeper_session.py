"""Requests of one session in flight, with a kazoo client that answers on demand."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from kazoo.protocol.states import KazooState

from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.interfaces import NoAnswer
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.coordination.zookeeper_session import MOST_ASKED, Unreachable, ZooKeeperSession


@attrs.define(eq=False)
class Asked:
    """A request in flight."""

    path: str
    answered: Callable[[Any], object] = lambda result: None

    def rawlink(self, callback: Callable[[Any], object]) -> None:
        self.answered = callback

    def successful(self) -> bool:
        return True


class Client:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._connection = SimpleNamespace(granted_seconds=6.0)

    def get_async(self, path: str) -> Asked:
        self.asked.append(Asked(path))
        return self.asked[-1]

    sync_async = get_children_async = get_async

    @property
    def paths(self) -> list[str]:
        return [one.path for one in self.asked]


class Session:
    """Connected; `answers` are the paths in the order in which they were answered."""

    def __init__(self) -> None:
        self.client = Client()
        self.told: list[object] = []
        self.answers: list[str] = []
        self.now = 0.0
        settings = CoordinatorSettings(parse_address("127.0.0.1:1"))
        self.session = ZooKeeperSession(settings, lambda: self.now, self.told.append)
        self.session._client = self.client  # type: ignore[assignment]
        self.session._state(KazooState.CONNECTED)

    def ask(self, numbers: range) -> None:
        for number in numbers:
            self.session.ask(
                lambda client, path=f"/{number}": client.get_async(path),  # type: ignore[misc]
                lambda asked: self.answers.append(asked.path),
            )

    def answer(self, asked: Asked) -> None:
        asked.answered(asked)


def paths(numbers: range) -> list[str]:
    return [f"/{number}" for number in numbers]


def test_only_so_much_is_on_its_way_and_all_is_asked_in_its_order() -> None:
    session = Session()
    session.ask(range(1000))
    assert session.client.paths == paths(range(MOST_ASKED))
    session.answer(session.client.asked[0])
    assert session.client.paths == paths(range(MOST_ASKED + 1))
    for number in range(1, 1000):
        session.answer(session.client.asked[number])
    assert (session.client.paths, session.answers) == (paths(range(1000)), paths(range(1000)))


def test_what_confirms_the_session_does_not_wait_behind_what_waits() -> None:
    session = Session()
    session.ask(range(1000))
    session.session._probe()
    assert session.client.paths[MOST_ASKED:] == ["/", "/"]


def test_what_waits_when_the_connection_is_lost_is_never_asked() -> None:
    session = Session()
    session.ask(range(100))
    old = list(session.client.asked)
    session.session._state(KazooState.SUSPENDED)
    with pytest.raises(NoAnswer):
        session.ask(range(1))
    session.session._state(KazooState.CONNECTED)
    session.ask(range(100, 200))
    for late in old:
        session.answer(late)
    assert session.client.paths == [*paths(range(MOST_ASKED)), *paths(range(100, 100 + MOST_ASKED))]


def test_what_waits_when_nothing_is_answered_for_long_is_never_asked() -> None:
    """The caller got NoAnswer, and asks again: otherwise old requests would always come before new ones."""
    session = Session()
    session.session._answers = True
    session.ask(range(100))
    session.session._probe()
    session.now = 2.5
    session.session._probe()
    assert session.told == [Unreachable()]
    session.answer(session.client.asked[0])
    assert len(session.client.asked) == MOST_ASKED + 2
