from __future__ import annotations

import itertools
from typing import Any

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.console.sessions import (
    FORGOTTEN_SECONDS,
    IDLE_SECONDS,
    LONGEST_SECONDS,
    MOST_HOSTS,
    MOST_SESSIONS,
    Attempts,
    ConsoleSessions,
    OneTimeToken,
    Role,
)


class Connections:
    """Replacement of a RemotingClient that records if it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def admin() -> Any:
    return AdminCalls(client=Connections(), name_servers=[], now_ms=lambda: 0, sleep=None)  # type: ignore[arg-type]


def made() -> tuple[ConsoleSessions, Clock]:
    clock, numbers = Clock(), itertools.count()
    return ConsoleSessions(clock, lambda: f"secret-{next(numbers)}"), clock


def test_a_session_ends_after_an_hour_without_a_request_and_closes_its_connections():
    sessions, clock = made()
    session = sessions.begin("me", Role.OPERATOR, admin())
    clock.now += IDLE_SECONDS
    assert sessions.find(session.key) == session
    clock.now += IDLE_SECONDS + 1
    assert sessions.find(session.key) is None
    assert session.admin.client.closed


def test_a_session_that_is_used_ends_after_twelve_hours():
    sessions, clock = made()
    session = sessions.begin("me", Role.OPERATOR, admin())
    began = clock.now
    while clock.now - began <= LONGEST_SECONDS:
        assert sessions.find(session.key) == session
        clock.now += IDLE_SECONDS / 2
    assert sessions.find(session.key) is None


def test_too_many_sessions_end_the_one_that_was_silent_longest():
    sessions, clock = made()
    begun = []
    for _ in range(MOST_SESSIONS):
        clock.now += 1
        begun.append(sessions.begin("me", Role.READER, admin()))
    sessions.find(begun[0].key)
    sessions.begin("other", Role.READER, admin())
    assert sessions.find(begun[1].key) is None
    assert sessions.find(begun[0].key) == begun[0]


def test_secrets_are_not_in_what_is_printed_of_a_session():
    sessions, _ = made()
    assert "secret-" not in repr(sessions.begin("me", Role.OPERATOR, admin()))


def test_a_token_counts_once():
    announced: list[str] = []
    numbers = itertools.count()
    token = OneTimeToken(announced.append, lambda: f"token-{next(numbers)}")
    assert not token.take("")
    token.renew()
    assert not token.take("token-1")
    assert token.take(" token-0\n")
    assert not token.take("token-0")
    assert announced == ["token-0", "token-1"]


def test_each_failure_past_the_free_ones_doubles_the_wait_of_its_host():
    clock = Clock()
    attempts = Attempts(clock)
    waits = []
    for _ in range(12):
        attempts.failed("a")
        waits.append(attempts.wait_seconds("a"))
        clock.now += waits[-1]
        assert attempts.wait_seconds("a") == 0.0
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert attempts.wait_seconds("b") == 0.0
    clock.now += FORGOTTEN_SECONDS + 1
    attempts.failed("a")
    assert attempts.wait_seconds("a") == 0.0


def test_many_hosts_that_fail_push_out_the_one_that_failed_first():
    clock = Clock()
    attempts = Attempts(clock)
    for host in ["first"] * 5 + ["second"] * 5 + [str(number) for number in range(MOST_HOSTS - 1)]:
        attempts.failed(host)
    assert attempts.wait_seconds("first") == 0.0
    assert attempts.wait_seconds("second") == 4.0


def test_a_request_goes_on_with_its_cluster_when_another_one_switches():
    """Else the rest of a page, and the form in it, would be about the other cluster."""
    sessions, _ = made()
    begun = sessions.begin("me", Role.OPERATOR, admin(), "shop")
    under_way = sessions.find(begun.key)
    sessions.add(sessions.find(begun.key), "bank", Role.READER, admin())
    later = sessions.find(begun.key)
    assert (under_way.cluster, later.cluster) == ("shop", "bank")
    assert not later.wrote(under_way.form_key)
    assert later.wrote_any(under_way.form_key)
    sessions.end(later)
    assert all(place.admin.client.closed for place in begun.places.values())
