"""SQL92 expressions and bloom filters beside Apache's own classes (rocketmq-filter): the same answers to the same questions."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.peers.line_peer import LinePeer
from interop.peers.requirements import require_java
from interop.peers.toolchain import compile_programs, java_command
from interop.sql_cases import VALUES, Cases
from twisted_mq.broker.filter.bloom_filter import BloomFilter
from twisted_mq.broker.filter.consumer_filter_data import ConsumerFilterTable
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager
from twisted_mq.broker.filter.errors import EvaluationError, ExpressionError
from twisted_mq.broker.filter.expression import compile_expression
from twisted_mq.protocol.bodies import SubscriptionData

pytestmark = pytest.mark.peer

SEED = 20250719
RANDOM_CASES = 20_000
BATCH = 500
RECORDED = Path(__file__).parent.parent / "tests" / "twisted_mq" / "broker" / "filter" / "apache_answers.json"
WRITTEN = {True: "true", False: "false", None: "null"}


@pytest.fixture(scope="module")
def filters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinePeer]:
    require_java()
    directory = tmp_path_factory.mktemp("filters")
    peer = LinePeer(java_command(directory, "256m", "Filters", classes=compile_programs()), directory, "filters")
    yield peer
    peer.close()


def our_answer(case: dict[str, Any]) -> list[str] | None:
    """As Filters.java answers."""
    try:
        compiled = compile_expression(case["expression"])
    except ExpressionError:
        return None
    return [one_result(compiled, message) for message in case["messages"]]


def one_result(compiled: Any, message: dict[str, str]) -> str:
    try:
        return WRITTEN[compiled.result(message)]
    except EvaluationError:
        return "error"


def differences(filters: LinePeer, cases: list[dict[str, Any]]) -> tuple[list[Any], Counter[str]]:
    """Each case in which the answers differ, and how often Apache gave which answer."""
    found, counted = [], Counter[str]()
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        for case, theirs in zip(batch, filters.request("evaluate", cases=batch), strict=True):
            ours = our_answer(case)
            counted.update(theirs if theirs is not None else ["refused"])
            if ours != theirs:
                found.append((case, {"apache": theirs, "ours": ours}))
    return found, counted


def test_random_expressions_have_apaches_answers(filters: LinePeer) -> None:
    cases = Cases(SEED)
    found, counted = differences(filters, [cases.case() for _ in range(RANDOM_CASES)])
    assert found[:5] == [], f"{len(found)} of {RANDOM_CASES} differ"
    assert all(counted[answer] > 200 for answer in ("true", "false", "null", "error", "refused")), counted


def test_every_odd_value_compares_with_every_type_as_in_java(filters: LinePeer) -> None:
    constants = ["5", "7L", "3000000000", "5.0", "-5", "-5.5", "1e-3", "TRUE", "FALSE", "'5'", "b", "-0"]
    marks = ["=", "<>", "<", "<=", ">", ">="]
    tests = [f"a {mark} {constant}" for constant in constants for mark in marks]
    tests += [f"{constant} {mark} a" for constant in constants for mark in marks]
    messages = [{"a": value, "b": other} for value in VALUES for other in ("5", "-0.0", "NaN")]
    found, _ = differences(filters, [{"expression": test, "messages": messages} for test in tests])
    assert found[:5] == []


def test_the_recorded_answers_are_apaches(filters: LinePeer) -> None:
    """The unit tests' table still says what Apache's classes say."""
    recorded = json.loads(RECORDED.read_text())
    assert [case["answer"] for case in recorded] == filters.request("evaluate", cases=recorded)


FILTERS = [
    {"topic": "TopicA", "group": "GroupA", "expression": "a > 5 AND TAGS = 'x'", "version": 1795216968628},
    {"topic": "TopicA", "group": "GroupB", "expression": "b IN ('\"', 'é')", "version": 2},
    {"topic": "%RETRY%GroupA", "group": "GroupA", "expression": "a IS NULL", "version": 3},
]


def manager_of(path: Path) -> ConsumerFilterManager:
    return ConsumerFilterManager(ConsumerFilterTable(str(path)), BloomFilter(20, 64))


def test_a_table_that_apache_wrote_is_read_and_written_alike(filters: LinePeer, tmp_path: Path) -> None:
    path = tmp_path / "consumerFilter.json"
    written = filters.request("write_table", filters=FILTERS)
    path.write_text(written)
    manager = manager_of(path)
    assert manager.load(now_ms=0) == []
    for one in FILTERS:
        data = manager.get(one["topic"], one["group"])
        assert data is not None and data.compiled is not None
        assert (data.expression, data.client_version, data.dead_time) == (
            one["expression"],
            one["version"],
            data.born_time,
        )
        data.dead_time = 0
    manager.save(now_ms=0)
    assert json.loads(path.read_text()) == json.loads(written)


def test_apache_reads_a_table_of_ours(filters: LinePeer, tmp_path: Path) -> None:
    path = tmp_path / "consumerFilter.json"
    manager = manager_of(path)
    for one in FILTERS:
        manager.register_one(
            one["group"],
            SubscriptionData(
                topic=one["topic"], sub_string=one["expression"], sub_version=one["version"], expression_type="SQL92"
            ),
            now_ms=1000,
        )
    manager.save(now_ms=2000)
    taken = filters.request("read_table", text=path.read_text())
    assert sorted(taken, key=lambda one: one["version"]) == sorted(FILTERS, key=lambda one: one["version"])


@pytest.mark.parametrize("error_rate, consumers", [(20, 32), (20, 64), (10, 128), (1, 1), (99, 7)])
def test_bloom_filters_have_apaches_positions_and_bits(filters: LinePeer, error_rate: int, consumers: int) -> None:
    texts = ["", "g#t", "GroupA#TopicA", "é#日本", "😀", *(f"{'group' * (n % 9)}{n}#topic{n}" for n in range(300))]
    ours = BloomFilter(error_rate, consumers)
    bits = ours.new_bits()
    for text in texts:
        ours.set_bits(bits, ours.positions(text))
    theirs = filters.request("bloom", error_rate=error_rate, consumers=consumers, texts=texts)
    assert theirs == {
        "k": ours.hash_count,
        "m": ours.bit_count,
        "positions": [list(ours.positions(text)) for text in texts],
        "bits": base64.b64encode(bits).decode(),
    }
