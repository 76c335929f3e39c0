"""Some seconds of an honest load through each face of the client (SOAK_SECONDS); `make soak-client` takes twenty minutes."""

from __future__ import annotations

import os
from pathlib import Path

from tests.soak.clients.ledger import KEYS, POLLING, STEADY, Ledger, Taken
from tests.soak.clients.outcome import FaceOutcome, broken_promises, growing
from tests.soak.clients.run import ClientSoak
from twisted_mq.client import RemotingError

SECONDS = float(os.environ.get("SOAK_SECONDS", "10"))


def test_restarts_and_broken_connections_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    soak = ClientSoak(tmp_path, SECONDS)
    outcomes = soak.run()
    assert broken_promises(outcomes, SECONDS) == []
    assert soak.troubles >= 1


def test_outcome_without_what_was_promised_is_told() -> None:
    rest = {"files": 7, "threads": 1, "timers": 0, "tasks": 0, "objects": 1000}
    outcome = FaceOutcome(
        sends={"SEND_OK": 9}, missing=2, wrong=["lost"], faults=["Unhandled"], exit_status=1, memory_a_minute=2.0,
        rests=[rest, {**rest, "files": 8, "objects": 90_000}],
    )  # fmt: skip
    assert broken_promises({"asyncio": outcome}, 10) == [
        "asyncio: lost",
        "asyncio: Unhandled",
        "asyncio: exit status 1",
        "asyncio: 2 acknowledged messages were not delivered",
        "asyncio: the load was hardly served: {'SEND_OK': 9}",
        "asyncio: open after the first round {'files': 7, 'threads': 1, 'timers': 0, 'tasks': 0}, "
        "after the last {'files': 8, 'threads': 1, 'timers': 0, 'tasks': 0}",
        "asyncio: 89000 more objects than after the first round",
    ]
    assert growing({"asyncio": outcome}) == ["asyncio: 2.0 MiB more a minute"]


def test_what_was_taken_is_known_in_little_memory() -> None:
    taken = Taken()
    assert [taken.add(number) for number in (1, 0, 0, 3, 1)] == [True, True, False, True, False]
    assert taken == Taken(below=2, ahead={3}) and taken.count == 3


def test_what_is_acknowledged_and_not_taken_is_missing(tmp_path: Path) -> None:
    with (tmp_path / "sent").open("w") as file:
        ledger = Ledger("T", file)
        first, failed = ledger.begin(0), ledger.begin(KEYS)
        ledger.end(failed, RemotingError("lost"))
        assert ledger.missing == 2  # of the first, by each group
        body = first.message.body
        assert not ledger.took(STEADY, body) and not ledger.took(STEADY, body)
        assert not ledger.took(POLLING, failed.message.body)
        assert (ledger.missing, ledger.again) == (1, {STEADY: 1})
    line = (tmp_path / "sent").read_text().split()
    assert [line[0], *line[2:]] == ["0", str(KEYS), "0", "RemotingError", "-1", "-1"]
