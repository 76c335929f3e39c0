"""The root of a daemon's services: expected errors become one line and exit status 1."""

from __future__ import annotations

import gc
import io
import sys

import pytest
from twisted.application import service
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from twisted_mq.config import startup
from twisted_mq.config.garbage import COLLECT_AFTER
from twisted_mq.config.startup import SWITCH_SECONDS, Daemon, DoesNotStart, print_reason


class Refused(Exception):
    """An error whose text is for a person."""


class Part(service.Service):
    """A service that notes its starts and stops, and may fail."""

    def __init__(self, notes: list[str], name: str, error: Exception | None = None) -> None:
        self.notes = notes
        self.note = name
        self.error = error

    def startService(self) -> None:
        if self.error is not None:
            raise self.error
        super().startService()
        self.notes.append(f"{self.note} started")

    def stopService(self) -> None:
        if self.running:
            self.notes.append(f"{self.note} stopped")
        super().stopService()


def daemon(notes: list[str], error: Exception | None, bind_address: str = "127.0.0.1") -> Daemon:
    root = Daemon("mqthing", (Refused,), bind_address)
    Part(notes, "first").setServiceParent(root)
    Part(notes, "second", error).setServiceParent(root)
    return root


def test_parts_start_in_order():
    notes: list[str] = []
    root = daemon(notes, None)
    root.privilegedStartService()
    root.startService()
    assert notes == ["first started", "second started"]


def test_a_part_that_says_it_is_ready_may_be_hung_up_on(monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("twisted_mq.config.startup.on_hang_up", lambda *_: notes.append("SIGHUP is heard"))
    root = Daemon("mqthing", (Refused,), "127.0.0.1", reactor=Clock())
    Part(notes, "part").setServiceParent(root)
    root.startService()
    assert notes == ["SIGHUP is heard", "part started"]


@pytest.mark.parametrize(("address", "lines"), [("0.0.0.0", 1), ("::", 1), ("127.0.0.1", 0)])
def test_start_on_all_addresses_without_accounts_is_one_warning(address, lines):
    with capturedLogs() as events:
        daemon([], None, address).startService()
    said = [formatEvent(one) for one in events if one["log_level"].name == "warn"]
    assert len(said) == lines
    assert all(one.startswith(f"open to every host: listens on all addresses ({address}) and has no") for one in said)


def test_expected_error_is_one_line_and_stops_what_had_started(monkeypatch):
    notes: list[str] = []
    printed = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", printed)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with capturedLogs() as events, pytest.raises(DoesNotStart) as caught:
        daemon(notes, Refused("port 1 is in use: stop the program that uses it")).startService()
    sys.excepthook(DoesNotStart, caught.value, None)
    assert printed.getvalue() == "mqthing: port 1 is in use: stop the program that uses it\n"
    lines = [formatEvent(one) for one in events]
    assert lines == ["mqthing does not start: port 1 is in use: stop the program that uses it"]
    assert notes == ["first started", "first stopped"]


def test_unexpected_error_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        daemon([], ZeroDivisionError()).startService()


def test_reason_is_printed_without_traceback_only_where_a_daemon_does_not_start(capsys):
    print_reason(KeyError, KeyError("x"), None)
    assert capsys.readouterr().err == "KeyError: 'x'\n"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    """Restore settings of a daemon for its whole process, which other tests share."""
    calls: list[tuple[str, object]] = []
    monkeypatch.setattr(gc, "callbacks", [])
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: calls.append(("switch", seconds)))
    monkeypatch.setattr(startup, "keep_freed_memory", lambda: calls.append(("keep freed memory", None)))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(("freeze", None)))
    monkeypatch.setattr(gc, "set_threshold", lambda *counts: calls.append(("collect", counts)))
    return calls


def test_a_daemon_sets_up_threads_memory_and_the_search_for_garbage(interpreter):
    daemon([], None).startService()
    settings = [("switch", SWITCH_SECONDS), ("keep freed memory", None)]
    assert interpreter == [*settings, ("freeze", None), ("collect", COLLECT_AFTER)]
