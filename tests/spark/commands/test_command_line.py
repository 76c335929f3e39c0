"""`mq spark JOB`: what all jobs share, on the session of the tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from tests.spark.stores import StoreWriter
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.mq import mq
from twisted_mq.cli.spark.commands import spark
from twisted_mq.cli.spark.frame import reason_of


def test_every_job_has_an_example() -> None:
    for name in spark.commands:
        text = CliRunner().invoke(mq, ["spark", name, "--help"]).output
        assert f"mq spark {name} {'' if name == 'pack' else '~/'}" in text
        options = [option in text for option in ("--limit", "--html", "--json", "--cores")]
        assert options == [name != "pack"] * 4


def test_text_json_page_and_exit_code(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    for offset in (0, 1, 4):
        writer.append(queue_offset=offset)
    store, html = writer.write(), tmp_path / "gaps.html"
    done = CliRunner().invoke(mq, ["spark", "gaps", store, "--html", str(html)])
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "what\tvalue",
        "gaps\t1",
        "missing offsets\t2",
        "Gaps: 1",
        "store\ttopic\tqueueId\tfirstMissing\tlastMissing\tmissing\tafterPhysicalOffset\tbeforePhysicalOffset",
        f"{store}\tOrders\t0\t2\t3\t2\t{writer.positions[1]}\t{writer.positions[2]}",
    ]
    assert store in html.read_text()
    done = CliRunner().invoke(mq, ["spark", "volume", store, "--json", "--limit", "1"])
    found = json.loads(done.output)
    assert (done.exit_code, found["job"], found["sound"]) == (0, "volume", True)
    assert found["figures"] == {"messages": 3, "bytes": 303, "topics": 1}
    assert found["tables"]["Topics"]["rows"][0]["topic"] == "Orders"
    assert session.range(1).count() == 1  # the session that was there is still there


def test_errors_are_one_line(session: SparkSession, tmp_path: Path) -> None:
    done = CliRunner().invoke(mq, ["spark", "gaps", str(tmp_path / "absent")])
    assert isinstance(done.exception, CliError)
    assert str(done.exception).startswith(f"{tmp_path}/absent: no such directory; use the directory that contains")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (["latency", "s", "--by", "topic,moon"], "'topic,moon': topic, hour or host are expected"),
        (["retention", "s", "--hours", "x"], "'x': whole numbers are expected"),
        (["replay", "s", "--topic", "T", "--option", "x"], "'x' is not an option; use NAME=VALUE"),
        (["export", "s"], "Missing option '--out'"),
        (["volume"], "Missing argument 'STORE...'"),
    ],
)
def test_wrong_options_are_named(line: list[str], reason: str) -> None:
    done = CliRunner().invoke(mq, ["spark", *line])
    assert (done.exit_code, reason in done.output) == (2, True)


def test_the_reason_of_a_failed_task() -> None:
    text = "An exception\nTraceback:\n  x\ntwisted_mq.spark.errors.DamagedLog: f: 3 damaged bytes\nat org.apache\n"
    assert reason_of(text) == "f: 3 damaged bytes"
    assert reason_of("[CODE] something else\nmore") == "[CODE] something else"
    gone = "Traceback:\nModuleNotFoundError: No module named 'twisted_mq'\n"
    assert reason_of(gone).endswith("run spark-submit with --py-files and the archive of `mq spark pack`")
    assert reason_of("") == "Spark does not report a reason"
