"""A minute of strangers and a full disk beside an honest load (SOAK_SECONDS); `make soak` takes twenty, and asserts times."""

from __future__ import annotations

import os
from pathlib import Path

from interop.peers.requirements import require_java
from tests.soak.load import OK, Sent, wrong
from tests.soak.outcome import Outcome, broken_promises
from tests.soak.run import Soak, growth_a_minute

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))


def test_strangers_and_a_full_disk_cost_honest_clients_nothing(tmp_path: Path) -> None:
    require_java()
    outcome = Soak(tmp_path, SECONDS, 20261122, simulated=True).run()
    print(outcome.text())
    assert broken_promises(outcome) == []


def test_outcome_without_what_was_promised_is_told() -> None:
    outcome = Outcome(
        seconds=10, connections=999, sends={OK: 9}, exit_status={"broker": 1}, missing=2, wrong=["lost"],
        most_memory={"broker": 9999.0}, strangers={"idle": {"rounds": 0}}, faults=["Unhandled"],
    )  # fmt: skip
    assert broken_promises(outcome) == [
        "lost",
        "Unhandled",
        "2 acknowledged messages were not delivered",
        "broker: 9999.0 MiB of memory",
        "broker: exit status 1",
        "idle was never tried",
        "only 999 connections were open",
        "the honest load was hardly served: {'SEND_OK': 9}",
        "the disk was never met full",
    ]


def test_lost_moved_repeated_and_reordered_messages_are_found() -> None:
    sent = [Sent(0, 1, (0, number), status, (1, number)) for number, status in enumerate((OK, "RemotingTimeout", OK))]
    assert wrong(sent, [((0, 0), (1, 0)), ((0, 2), (1, 2))]) == []
    assert wrong(sent, [((0, 0), (1, 0))]) == ["message (0, 2) was acknowledged at (1, 2), and is at None"]
    assert wrong(sent, [((0, 2), (1, 2)), ((0, 0), (1, 0))]) == ["message 0 of key 0 at (1, 0) is behind 2"]
    assert wrong(sent, [((0, 0), (1, 0)), ((0, 2), (1, 2)), ((0, 2), (1, 3))]) == [
        "message 2 of key 0 at (1, 3) is behind 2",
        "message (0, 2) was acknowledged at (1, 2), and is at (1, 3)",
    ]


def test_memory_that_comes_and_goes_does_not_grow() -> None:
    seconds = range(1200)
    assert growth_a_minute([(second, 100 + second % 20 * 30) for second in seconds]) == 0
    assert growth_a_minute([(second, 100 + second / 6 + second % 20 * 30) for second in seconds]) == 10
    assert growth_a_minute([(second, float(second)) for second in range(60)]) == 0
