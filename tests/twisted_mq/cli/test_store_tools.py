"""The commands of `mq store` that filter, account, repair and rebuild, on what Apache's broker wrote."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from twisted_mq.cli.store import store
from twisted_mq.cli.store_options import time_text
from twisted_mq.storage.files.directory import DirectoryLock

CAPTURES = Path(__file__).parents[3] / "interop" / "captures" / "store"


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    for name in ("st", "cut_tail", "ha_master"):
        with tarfile.open(CAPTURES / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
    return tmp_path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(store, [str(argument) for argument in arguments])


def dumped(*arguments: object) -> list[dict]:
    return [json.loads(line) for line in invoke("dump", *arguments, "--json").stdout.splitlines()]


def state(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_dump_is_filtered_by_each_condition(stores: Path) -> None:
    every = dumped(stores / "st")
    moment, offset = every[200]["storeTimestamp"], every[200]["physicalOffset"]
    assert dumped(stores / "st", "--topic", "CapOrder") == [one for one in every if one["topic"] == "CapOrder"]
    assert dumped(stores / "st", "--topic", "CapOrder", "--topic", "CapTx", "--queue", 0) == [
        one for one in every if one["topic"] in ("CapOrder", "CapTx") and one["queueId"] == 0
    ]
    assert dumped(stores / "st", "--since", moment) == [one for one in every if one["storeTimestamp"] >= moment]
    assert dumped(stores / "st", "--until", moment) == [one for one in every if one["storeTimestamp"] < moment]
    assert dumped(stores / "st", "--offsets", f"{offset}:{offset + 1}") == [every[200]]
    assert dumped(stores / "st", "--queue-offsets", "3:5") == [one for one in every if 3 <= one["queueOffset"] < 5]
    assert dumped(stores / "st", "--key", "ok0") == [
        one for one in every if "ok0" in one["properties"].get("KEYS", "").split(" ")
    ]
    unique = every[5]["properties"]["UNIQ_KEY"]
    assert dumped(stores / "st", "--key", unique) == [
        one for one in every if one["properties"].get("UNIQ_KEY") == unique
    ]
    assert dumped(stores / "st", "--key", every[7]["msgId"]) == [every[7]]


def test_times_are_read_as_iso_8601(stores: Path) -> None:
    every = dumped(stores / "st")
    expected = [one for one in every if one["storeTimestamp"] >= 1795216800000]
    assert dumped(stores / "st", "--since", "2026-11-20T23:20:00") == expected
    assert dumped(stores / "st", "--since", "2026-11-21T07:20:00+08:00") == expected
    assert invoke("dump", stores / "st", "--since", "yesterday").exit_code == 2
    assert invoke("dump", stores / "st", "--offsets", "12").exit_code == 2
    assert time_text(1795216800000) == "2026-11-20 23:20:00"


def test_verify_as_json(stores: Path) -> None:
    found = json.loads(invoke("verify", stores / "cut_tail", "--json").stdout)
    assert (found["sound"], found["messages"], [one["part"] for one in found["findings"]]) == (
        False,
        1015,
        ["log", "queue", "index"],
    )


def test_repair_prints_a_plan_and_applies_it_when_told(stores: Path) -> None:
    root = stores / "cut_tail"
    before, messages = state(root), dumped(root)
    planned = invoke("repair", root)
    assert (planned.exit_code, planned.stdout.splitlines()[-1]) == (0, "nothing was changed; add --apply to do it")
    assert (
        f"{root}/commitlog/{393216:020d} at 505906: clear the bytes after the last intact record of the log"
        in planned.stdout
    )
    assert state(root) == before
    done = invoke("repair", root, "--apply")
    assert (done.exit_code, done.stdout.splitlines()[-1].split(" in ")[0]) == (0, "done; removed data is kept")
    assert invoke("verify", root).exit_code == 0
    assert dumped(root) == messages
    again = invoke("repair", root, "--apply", "--json")
    assert (json.loads(again.stdout)["applied"], invoke("repair", root).stdout.splitlines()[-1]) == (
        False,
        "nothing to repair",
    )


def test_rebuild_of_lost_queues_and_index(stores: Path) -> None:
    root = stores / "st"
    for path in (root / "consumequeue").rglob("0*0"):
        os.unlink(path)
    assert invoke("verify", root).exit_code == 1
    planned = json.loads(invoke("rebuild", root, "--json").stdout)
    assert (planned["applied"], planned["entries"], planned["queues"]) == (False, 399, 28)
    done = invoke("rebuild", root, "--apply")
    assert (done.exit_code, "queue entries\t399" in done.stdout, "index entries\t792" in done.stdout) == (0, True, True)
    assert invoke("verify", root).exit_code == 0


def test_queue_file_size_of_no_whole_entries_is_refused(stores: Path) -> None:
    before = state(stores / "st")
    result = invoke("rebuild", stores / "st", "--apply", "--queue-file-size", "30")
    assert (result.exit_code, "30 is not a multiple of 20" in result.stderr) == (2, True)
    assert state(stores / "st") == before


def test_commands_that_write_refuse_while_a_broker_runs(stores: Path) -> None:
    root = stores / "cut_tail"
    lock = DirectoryLock(str(root / "lock"))
    lock.acquire()
    before = state(root)
    try:
        for command in ("repair", "rebuild"):
            result = invoke(command, root, "--apply")
            assert (result.exit_code, str(result.exception)) == (
                1,
                f"{root}: a broker is running on this store; stop it, then run the command again",
            )
        assert "last broker\tis running" in invoke("verify", root).stdout
    finally:
        lock.release()
    assert state(root) == before


def test_sizes_name_topics_files_and_what_dropping_would_free(stores: Path) -> None:
    lines = [line.split("\t") for line in invoke("sizes", stores / "st", "--drop", "CapMany").stdout.splitlines()]
    assert lines[1] == [
        "CapMany", "260", "126564", "126564", "5600", "3", "2026-11-20 23:20:35", "2026-11-20 23:20:36",
    ]  # fmt: skip
    files = {line[0]: line[4] for line in lines if line[0].isdigit()}
    assert files[f"{65536:020d}"] == "CapMany"
    dropped = dict(line for line in lines if len(line) == 2)
    assert (
        dropped["log files that no other topic pins"],
        dropped["log files that could be deleted, oldest first"],
    ) == (
        "1",
        "0",
    )
    found = json.loads(invoke("sizes", stores / "st", "--json").stdout)
    assert sum(topic["messages"] for topic in found["topics"]) == 399
    assert found["drop"] is None


@pytest.mark.parametrize("command", ["dump", "verify", "sizes", "repair", "rebuild"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example:\n    mq store {command} ~/store" in invoke(command, "--help").stdout
