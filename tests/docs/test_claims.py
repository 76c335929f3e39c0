"""Statements of the pages about differences and compatibility have tests that exist and run.

Each statement of docs/explanation/differences.md and each row of the console's features name tests in a comment, each row of
docs/reference/compatibility.md in its last column. Statements about what is missing are shown here.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.topics.topic_attributes import MESSAGE_TYPES
from twisted_mq.broker.topics.topic_config_manager import MOST_QUEUES
from twisted_mq.config.metrics_options import MetricsExporterType
from twisted_mq.config.options import option_fields
from twisted_mq.config.properties import parse_properties
from twisted_mq.config.tls_options import TlsMode
from twisted_mq.config.unserved import PROMISES, broken_promises
from twisted_mq.namesrv.options import NamesrvOptions

DIFFERENCES = (ROOT / "docs" / "explanation" / "differences.md").read_text()
COMPATIBILITY = (ROOT / "docs" / "reference" / "compatibility.md").read_text()
SHOWN_BY = re.compile(r"<!-- shown by (?P<path>[\w/]+\.py)::(?P<name>\w+) -->")
STATEMENTS = re.findall(r"^- (?:.*\n)(?:  .*\n)*", DIFFERENCES, re.MULTILINE)
CONSOLE = (ROOT / "docs" / "how-to" / "console.md").read_text()
FEATURES = re.findall(
    r"^\| (?!---|rocketmq-dashboard)(.*) \|$", CONSOLE.partition("## Beside rocketmq-dashboard")[2].partition("\n## ")[0],
    re.MULTILINE,
)  # fmt: skip
ROWS = re.findall(r"^\| (?!---|peer)(.*) \|$", COMPATIBILITY, re.MULTILINE)


@cache
def functions(path: Path) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The tests of a file, those of classes too."""
    nodes = ast.walk(ast.parse(path.read_text()))
    found = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {node.name: node for node in found if node.name.startswith("test_")}


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement[2:40].strip())
def test_a_difference_names_a_test_that_runs(statement: str) -> None:
    shown = SHOWN_BY.findall(statement)
    assert shown, "no test is named"
    for path, name in shown:
        test = functions(ROOT / path)[name]
        assert not any("skip" in ast.unparse(decorator) for decorator in test.decorator_list)


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row[:40])
def test_a_feature_of_the_console_names_a_test_that_runs(row: str) -> None:
    shown = SHOWN_BY.findall(row)
    assert shown, "no test is named"
    for path, name in shown:
        assert name in functions(ROOT / path)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[:40])
def test_a_row_of_compatibility_names_tests(row: str) -> None:
    named = re.findall(r"`((?:interop|tests)/[\w/]*|[\w/]*test_\w+\.py)(?:\.py)?`", row.rpartition(" | ")[2])
    assert named
    for name in named:
        place = ROOT / (name if "/" in name else f"interop/{name}")
        files = sorted(place.rglob("test_*.py")) if place.is_dir() else [place.with_suffix(".py")]
        assert any(functions(file) for file in files)


def test_there_are_statements_and_rows() -> None:
    assert (len(STATEMENTS) > 60, len(ROWS) > 15, len(FEATURES)) == (True, True, 14)


# what is missing, and defaults


def test_what_5_4_has_and_this_does_not() -> None:
    assert "useSeparateRetryQueue" not in option_fields(BrokerOptions)
    assert "LITE" not in MESSAGE_TYPES


def test_most_queues_of_a_topic() -> None:
    assert MOST_QUEUES == 65_535


def test_default_of_the_scan_for_silent_brokers() -> None:
    assert NamesrvOptions().scan_not_active_broker_interval == 5_000


def test_encryption_is_off_by_default() -> None:
    assert (BrokerOptions().tls_server_mode, NamesrvOptions().tls_server_mode) == (TlsMode.DISABLED, TlsMode.DISABLED)


@pytest.mark.parametrize(
    "line", ["enableControllerMode=true", "enableDLegerCommitLog=true", "storeType=defaultRocksDB"]
)
def test_keys_of_what_is_missing_end_the_start(line: str) -> None:
    assert [entry.key for entry in broken_promises(parse_properties(line.encode()), served=())] == [
        line.partition("=")[0]
    ]


@pytest.mark.parametrize(
    "key", ["enableLmq", "enableMultiDispatch", "enablePopBufferMerge", "popConsumerKVServiceEnable"]
)
def test_keys_without_effect(key: str) -> None:
    field = option_fields(BrokerOptions).get(key)
    assert field is None or not field.metadata["has_effect"]
    assert key not in PROMISES


def test_no_module_compacts() -> None:
    assert modules_named("compact") == []


def test_no_module_cleans_mappings() -> None:
    assert modules_named("mapping_clean|clean_mapping") == []


def modules_named(pattern: str) -> list[str]:
    """Modules of the broker, the store and the commands by their names."""
    files = [file for top in ("twisted_mq", "storage") for file in (ROOT / top).rglob("*.py")]
    found = {file.relative_to(ROOT).as_posix() for file in files if re.search(pattern, file.stem)}
    return sorted(name for name in found if not name.startswith("twisted_mq/storage"))


def test_metrics_are_not_written_to_a_log() -> None:
    assert "LOG" not in {one.value for one in MetricsExporterType}


def test_figures_of_slower_parts_are_measured() -> None:
    """The page of measurements still has a ratio below one for each; a better one is to be said here."""
    page = (ROOT / "docs" / "measurements" / "index.md").read_text()
    rows = {row.split("|")[1].strip(): row for row in page.splitlines() if row.startswith("|")}
    assert "| 0.85 |" in rows["the same, of different lengths"]
    assert "| 0.96 |" in rows["delayed by level 1"]
    assert "| 0.94 |" in rows["the same: readable MB/s"]
    assert "0.69, 0.78 and 1.18" in page


def test_static_topics_and_hand_over_are_no_limits() -> None:
    limits = DIFFERENCES.partition("## Known limits")[2]
    assert not re.search(r"no static topics|knows no static|no hand-over", limits)
    assert "twisted_mq/broker/topics/logic_queues.py" in modules_named("logic_queues")
