import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.cli.admin.java_format import (
    fixed,
    hash_order,
    map_text,
    parse_number,
    pretty_json,
    text_or_null,
    time_text,
)

CAPTURED_TOPICS = [
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "%RETRY%CG_admin",
    "BenchmarkTest",
    "OFFSET_MOVED_EVENT",
    "TBW102",
    "SELF_TEST_TOPIC",
    "rmq_sys_SYNC_BROKER_MEMBER_broker-cap",
    "rmq_sys_REVIVE_LOG_CapCluster",
    "CapAdmin",
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRACE_TOPIC",
    "CapSync",
    "CapPush",
    "%RETRY%CG_push",
    "rmq_sys_wheel_timer",
    "CapCluster",
    "CapCluster_REPLY_TOPIC",
    "broker-cap",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
]


def test_names_come_in_the_order_of_a_java_hash_set():
    assert hash_order(CAPTURED_TOPICS) == CAPTURED_TOPICS
    assert hash_order(["CG_admin", "CapAdmin"]) == ["CapAdmin", "CG_admin"]


@given(st.lists(st.text()))
def test_ordering_loses_no_name(names):
    assert sorted(hash_order(names)) == sorted(set(names))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.6, 2, "0.60"), (0.125, 2, "0.13"), (2.675, 2, "2.68"), (1e-7, 4, "0.0000"), (12345.678, 0, "12346")],
)
def test_numbers_round_half_up_on_their_decimal_digits(value, digits, text):
    assert fixed(value, digits) == text


def test_percent_s_prints_java_words():
    assert [text_or_null(value) for value in (None, True, False, 7, "x")] == ["null", "true", "false", "7", "x"]


def test_figures_that_are_no_numbers_count_as_zero():
    assert [parse_number(text) for text in ("1.5", "", None, "N")] == [1.5, 0.0, 0.0, 0.0]


def test_maps_print_as_java_prints_them():
    assert map_text({0: "a:1", 1: "b:2"}) == "{0=a:1, 1=b:2}"
    assert map_text({"+message.type": "FIFO"}) == "{+message.type=FIFO}"
    assert map_text({}) == "{}"


def test_times_have_milliseconds_behind_a_comma():
    assert time_text(1795217242099, datetime.UTC) == "2026-11-20 23:27:22,099"


def test_number_keys_are_neither_quoted_nor_on_their_own_line():
    value = {"brokerAddrs": {0: "127.0.0.2:20911", 1: "x:1"}, "filterServerTable": {}, "queueDatas": []}
    assert pretty_json(value) == (
        '{\n\t"brokerAddrs":{0:"127.0.0.2:20911",1:"x:1"\n\t},\n\t"filterServerTable":{},\n\t"queueDatas":[]\n}'
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_pretty_text_with_string_keys_is_the_same_json(value):
    assert json.loads(pretty_json(value)) == value
