"""The report in the terminal, its files, and the command."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from rich.console import Console

from tests.spark.report_samples import EMPTY, report, topic
from tests.spark.stores import StoreWriter
from twisted_mq.spark.report.report_data import StoreReport
from twisted_mq.spark.report.store_report import QUEUES_PRINTED, main, print_report, write_report
from twisted_mq.spark.source.log_stretch import Damage


def printed(shown: StoreReport) -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    print_report(shown, console)
    output = console.file
    assert isinstance(output, io.StringIO)
    return [" ".join(line.replace("│", " ").split()) for line in output.getvalue().splitlines()]


def test_a_line_a_topic_and_one_a_queue() -> None:
    damage = Damage("00000000000000000000", 4096, 100, "zero bytes")
    lines = printed(report(topic("[b]Orders", queues=2), topic("SELF_TEST_TOPIC"), damage=(damage,)))
    assert lines[4:8] == [
        "[b]Orders all 20 3.9 KiB - - - 1 ms 20 ms 1.5 s",
        "0 10 2.0 KiB 0..9 - -",
        "1 10 2.0 KiB 0..9 - -",
        "SELF_TEST_TOPIC 0 10 2.0 KiB 0..9 - - - 1 ms 20 ms 1.5 s",
    ]
    assert lines[9:] == [
        "30 messages, 5.9 KiB in 2 file(s); gaps 0, duplicates by unique key 0, wrong body CRC 0, damaged stretches 1",
        "damaged: 100 bytes at physical offset 4096 of file 00000000000000000000: zero bytes",
    ]


def test_of_many_queues_some_are_printed() -> None:
    lines = printed(report(topic("Orders", queues=QUEUES_PRINTED + 5)))
    assert f"{QUEUES_PRINTED} of {QUEUES_PRINTED + 5} queues; the page has them all" in lines


def test_an_empty_store_is_a_report_too() -> None:
    assert printed(EMPTY)[-1].startswith("0 messages, 0 B in 0 file(s); gaps 0,")


def test_page_and_picture_are_written(tmp_path: Path) -> None:
    target, picture = write_report(report(topic("Orders")), tmp_path / "made" / "here")
    assert (target, picture) == (tmp_path / "made/here/report.html", tmp_path / "made/here/report.png")
    assert "<svg" in target.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_command(
    session: SparkSession, tmp_path: Path, writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        writer.append(queue_id=number % 2)
    out = tmp_path / "out"
    stopped: list[bool] = []
    monkeypatch.setattr("twisted_mq.spark.session.local_session", lambda name, cores: session)
    monkeypatch.setattr(session, "stop", lambda: stopped.append(True))
    result = CliRunner().invoke(main, [writer.write(), "--out", str(out)])
    assert (result.exit_code, stopped) == (0, [True])
    lines = result.stdout.splitlines()
    assert lines[-2:] == [f"report: {out}/report.html", f"picture: {out}/report.png"]
    assert lines[-3].startswith("5 messages, 505 B in 1 file(s); gaps 0,")


def test_a_missing_store_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.spark.session.local_session", lambda name, cores: None)
    result = CliRunner().invoke(main, [str(tmp_path / "absent")])
    assert result.exit_code == 1
    assert result.output == (
        f"Error: {tmp_path}/absent: no such directory; use the directory that contains commitlog/ (storePathRootDir), or "
        "commitlog/ itself\n"
    )
