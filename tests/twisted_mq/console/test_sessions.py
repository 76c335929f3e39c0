from __future__ import annotations

import itertools
from typing import Any

from twisted_mq.admin.calls import Admin
from twisted_mq.console.sessions import (
    FAILURE_SECONDS,
    IDLE_SECONDS,
    LONGEST_SECONDS,
    MOST_FAILURES,
    MOST_SESSIONS,
    Attempts,
    OneTimeToken,
    Role,
    Sessions,
)


class Connections:
    """Stands for a RemotingClient: whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def admin() -> Any:
    return Admin(client=Connections(), name_servers=[], now_ms=lambda: 0, sleep=None)  # type: ignore[arg-type]


def made() -> tuple[Sessions, Clock]:
    clock, numbers = Clock(), itertools.count()
    return Sessions(clock, lambda: f"secret-{next(numbers)}"), clock


def test_a_session_ends_after_an_hour_without_a_request_and_closes_its_connections():
    sessions, clock = made()
    session = sessions.begin("me", Role.OPERATOR, admin())
    clock.now += IDLE_SECONDS
    assert sessions.find(session.key) is session
    clock.now += IDLE_SECONDS + 1
    assert sessions.find(session.key) is None
    assert session.admin.client.closed


def test_a_session_that_is_used_ends_after_twelve_hours():
    sessions, clock = made()
    session = sessions.begin("me", Role.OPERATOR, admin())
    began = clock.now
    while clock.now - began <= LONGEST_SECONDS:
        assert sessions.find(session.key) is session
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
    assert sessions.find(begun[0].key) is begun[0]


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


def test_attempts_are_open_again_a_minute_after_the_first_of_the_last_ten():
    clock = Clock()
    attempts = Attempts(clock)
    for _ in range(MOST_FAILURES):
        assert attempts.wait_seconds() == 0.0
        attempts.failed()
        clock.now += 1
    assert attempts.wait_seconds() == FAILURE_SECONDS - MOST_FAILURES
    clock.now += FAILURE_SECONDS
    assert attempts.wait_seconds() == 0.0
