"""`mq store` on the stores that Apache's broker wrote, against what Apache's own store read from them."""

import json
import os
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from twisted_mq.cli.store import store
from twisted_mq.cli.store_dump import COLUMNS

CAPTURES = Path(__file__).parents[3] / "interop" / "captures" / "store"
KEYS = (
    "topic", "queueId", "queueOffset", "physicalOffset", "msgId", "storeSize", "bodyCRC", "sysFlag", "flag",
    "bornTimestamp", "storeTimestamp", "bornHost", "storeHost", "reconsumeTimes", "preparedTransactionOffset",
    "properties", "bodySha256", "bodyLength",
)  # fmt: skip


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    for path in CAPTURES.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            archive.extractall(directory, filter="data")
    return directory


def messages_of(name: str) -> list[dict]:
    """Return the messages that Apache's store read, with the keys of a dump."""
    lines = [json.loads(line) for line in (CAPTURES / f"{name}.jsonl").read_text().splitlines()]
    found = [{**line, "physicalOffset": line["commitLogOffset"]} for line in lines if line["kind"] == "message"]
    return [{key: line[key] for key in KEYS} for line in found]


def invoke(*arguments: str):
    return CliRunner().invoke(store, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", ["st", "livecopy", "ha_master", "ha_slave"])
def test_dump_prints_what_apaches_store_reads(stores, name):
    result = invoke("dump", stores / name, "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines == messages_of(name)


def test_dump_has_exactly_the_keys_of_the_contract_in_their_order(stores):
    first = invoke("dump", stores / "ha_master", "--json").stdout.splitlines()[0]
    assert tuple(json.loads(first)) == KEYS


def test_dump_of_a_damaged_store_prints_the_rest_and_names_the_offset(stores):
    result = invoke("dump", stores / "cut_tail", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == messages_of("cut_tail")
    assert (result.exit_code, result.stderr) == (
        1,
        f"mq store dump: {stores}/cut_tail/commitlog/{393216:020d} at offset 505906: 149454 bytes are not a record: "
        "properties of 0 bytes where 140 are left of the record\n",
    )


def test_dump_without_json_is_a_table_with_tabs(stores):
    lines = invoke("dump", stores / "st").stdout.splitlines()
    assert lines[0].split("\t") == list(COLUMNS)
    assert lines[1].split("\t") == [
        "CapOrder",
        "0",
        "0",
        "0",
        "240",
        "T0",
        "ok0",
        "C0000202733D4E0E2F2A66D992F80000",
        "14",
    ]
    assert len(lines) == 1 + len(messages_of("st"))


def test_a_log_outside_of_the_store_is_found(stores, tmp_path):
    os.makedirs(tmp_path / "elsewhere")
    os.symlink(stores / "ha_master" / "commitlog", tmp_path / "log")
    result = invoke("dump", tmp_path / "elsewhere", "--commit-log", tmp_path / "log", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == messages_of("ha_master")


def test_dump_changes_nothing_in_the_store(stores):
    def state() -> list[tuple[str, int, int]]:
        files = sorted((stores / "st").rglob("*"))
        return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]

    before = state()
    invoke("dump", stores / "st", "--json")
    invoke("verify", stores / "st")
    assert state() == before


def test_verify_of_a_sound_store_ends_with_0(stores):
    result = invoke("verify", stores / "st")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "what\tvalue",
            f"store\t{stores}/st",
            "last broker\tclosed it",
            "first byte of the log\t0",
            "end of the last message\t181963",
            "messages\t399",
            "bytes of messages\t181464",
            "topics with queues\t15",
            "queues\t28",
            "queue entries\t399",
            "index entries\t792",
            "messages of deleted topics\t0",
            "messages not dispatched yet\t0",
            "sound: every record has its queue entry, every entry its record",
        ],
    )


def test_verify_names_entries_that_lead_past_the_log(stores):
    result = invoke("verify", stores / "livecopy")
    index = f"{stores}/livecopy/index/20261120233636626"
    assert (result.exit_code, result.stdout.splitlines()[-4:]) == (
        1,
        [
            f"{stores}/livecopy/consumequeue/CapTorn/0 at 484: leads to 481597, where no record of this queue offset is",
            f"{stores}/livecopy/consumequeue/CapTorn/1 at 483: leads to 481230, where no record of this queue offset is",
            f"{index} at 337: leads to 481230, where no record has a key of hash 1588188360; and so on, 4 in a row",
            f"3 problems: `mq store repair {stores}/livecopy` shows how to repair it",
        ],
    )


def test_a_missing_directory_is_a_usage_error(tmp_path):
    result = invoke("verify", tmp_path / "nowhere")
    assert (result.exit_code, "does not exist" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--since", "\u00b2", "is not a time"),
        ("--until", "9" * 5000, "is not a time"),
        ("--offsets", "\u00b2:1", "is not a range"),
        ("--queue-offsets", "9" * 5000 + ":", "is not a range"),
    ],
)
def test_digits_that_are_no_number_are_a_usage_error(tmp_path, option, value, said):
    result = invoke("dump", str(tmp_path), option, value)
    assert (result.exit_code, said in result.output) == (2, True)
