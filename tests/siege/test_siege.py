"""Half a minute of a siege (SIEGE_SECONDS); `make siege` takes twenty minutes, and asserts times."""

from __future__ import annotations

import os
from pathlib import Path

from tests.siege.outcome import Outcome, broken_promises, slow
from tests.siege.run import Siege, different_files, of_deleted_topic
from twisted_mq.storage.interfaces import Inconsistency

SECONDS = float(os.environ.get("SIEGE_SECONDS", "15"))
PATIENCE_SECONDS = 60.0
"""Timeout of an honest send while other tests use the processors."""


def test_hostile_cases_of_all_kinds_cost_honest_clients_nothing(tmp_path: Path) -> None:
    outcome = Siege(tmp_path, SECONDS, timeout=PATIENCE_SECONDS).run()
    print(outcome.text())
    assert broken_promises(outcome) == []


def test_what_was_not_kept_is_told() -> None:
    sound = {"acknowledged": 9, "errors": {}, "missing": 0, "forged": 0, "unknown": 0, "early": 0, "p99_ms": 1.0}
    outcome = Outcome(
        honest={
            "send": sound | {"errors": {"RemotingTimeoutError": 1}, "missing": 2, "p99_ms": 201.0},
            "pop": sound | {"acknowledged": 0},
        },
        most_memory={"broker": 9999.0}, exit_status={"slave": 1}, slave_behind_bytes=7, logs_mib={"broker": 11.0},
        strangers={"idle": {"rounds": 0}}, faults=["Unhandled"], wrong=["lost"],
    )  # fmt: skip
    assert broken_promises(outcome) == [
        "lost",
        "Unhandled",
        "send: {'RemotingTimeoutError': 1} errors",
        "send: 2 missing",
        "pop: nothing was acknowledged",
        "broker: 9999.0 MiB of memory",
        "broker: 11.0 MiB of log",
        "slave: exit status 1",
        "only 0 of 1 hostile cases were tried",
        "the slave's log is 7 bytes behind its master's",
    ]
    assert slow(outcome) == ["idle was never tried", "send: 99 of 100 took up to 201.0 ms"]


def test_a_slaves_log_is_a_beginning_of_its_masters(tmp_path: Path) -> None:
    for name, data in {"slave": b"abc\0\0", "master": b"abcd\0", "other": b"abd\0\0"}.items():
        (tmp_path / name / "commitlog").mkdir(parents=True)
        (tmp_path / name / "commitlog" / "0").write_bytes(data)
    assert different_files(tmp_path / "slave", tmp_path / "master") == []
    assert different_files(tmp_path / "slave", tmp_path / "other") == ["0"]


def test_only_topics_that_strangers_delete_may_lack_their_queues() -> None:
    lacks = "no entry leads to the record at 103995690"
    problems = [Inconsistency("%RETRY%fuzzers/0", 0, lacks), Inconsistency("Siege/0", 0, lacks),
                Inconsistency("FuzzA/0", 0, "leads to 7, where no record of this queue offset is")]  # fmt: skip
    assert [of_deleted_topic(one) for one in problems] == [True, False, False]
