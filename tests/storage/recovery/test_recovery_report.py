"""The report of a start."""

from __future__ import annotations

import pytest

from tests.storage.conftest import OpenFileStore
from twisted_mq.storage.recovery.recovery_report import RecoveryAction, RecoveryReport


def test_start_of_a_new_store_finds_nothing(open_store: OpenFileStore) -> None:
    expected = RecoveryReport(True, scan_start=0, end_offset=0, records_checked=0, entries_written=0, actions=[])
    assert open_store().recovery_report == expected


def test_each_action_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    report = RecoveryReport(False)
    report.add("store/commitlog", 591, "the log was cut here")
    assert report.actions == [RecoveryAction("store/commitlog", 591, "the log was cut here")]
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "recovery: store/commitlog at 591: the log was cut here")
    ]
