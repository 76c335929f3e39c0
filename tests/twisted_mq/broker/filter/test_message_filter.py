"""The two tests of a pull, and the bit map of a stored message."""

from __future__ import annotations

import attrs
import pytest

from tests.twisted_mq.broker.filter.test_consumer_filter_manager import NOW, MemoryTable, sql
from twisted_mq.broker.filter.bloom_filter import BloomFilter
from twisted_mq.broker.filter.consumer_filter_manager import ConsumerFilterManager
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.message_filter import MessageFilter, filter_bit_map, group_of_retry, request_filter
from twisted_mq.protocol.messages.subscription import build_subscription
from twisted_mq.protocol.text.java import java_hash

SQL = sql("a > 5")


@pytest.fixture
def manager():
    made = ConsumerFilterManager(MemoryTable(), BloomFilter(20, 32))
    made.register_one("g", SQL, NOW)
    return made


@pytest.fixture
def by_sql(manager):
    return MessageFilter(SQL, manager.get("T", "g"), manager)


def test_tags_are_tested_by_their_hash_only(manager):
    by_tag = MessageFilter(build_subscription("T", "x || y"), None, manager)
    assert [by_tag.matches_entry(code) for code in (java_hash("x"), java_hash("z"), None)] == [True, False, True]
    assert not by_tag.needs_properties
    assert by_tag.matches_properties({"a": "1"})


def test_an_expression_is_tested_by_properties(by_sql):
    assert by_sql.needs_properties
    assert by_sql.matches_entry(12345)
    assert [by_sql.matches_properties(properties) for properties in ({"a": "6"}, {"a": "5"}, {}, {"a": "x"})] == [
        True, False, False, False,
    ]  # fmt: skip


def test_a_bit_map_passes_over_messages_without_reading_them(by_sql, manager):
    hit = filter_bit_map(manager, "T", {"a": "6"})
    missed = filter_bit_map(manager, "T", {"a": "1"})
    assert (len(hit), missed) == (14, bytes(14))
    assert [by_sql.matches_entry(0, NOW + 1, bits) for bits in (hit, missed)] == [True, False]


def test_a_bit_map_from_before_the_group_or_of_another_size_says_nothing(by_sql):
    assert by_sql.matches_entry(0, NOW, bytes(14))
    assert by_sql.matches_entry(0, NOW + 1, bytes(27))


def test_a_request_with_its_own_subscription_has_no_positions(manager):
    data = request_filter("T", "g", "a > 5", "SQL92", 1, NOW)
    own = MessageFilter(SQL, data, manager)
    assert own.matches_entry(0, NOW + 1, bytes(14))
    assert [own.matches_properties({"a": value}) for value in ("6", "5")] == [True, False]
    with pytest.raises(ExpressionError):
        request_filter("T", "g", "a >", "SQL92", 1, NOW)


def test_the_bit_map_has_the_bits_of_all_groups_that_match(manager):
    manager.register_one("h", sql("a > 7"), NOW)
    bits = filter_bit_map(manager, "T", {"a": "6"})
    hits = [manager.bloom_filter.is_hit(bits, data.bloom_filter_data.bit_pos) for data in manager.of_topic("T")]
    assert hits == [True, False]


def test_a_topic_without_filters_has_no_bit_map(manager):
    assert filter_bit_map(manager, "Other", {"a": "6"}) is None


def test_retried_messages_pass_unless_the_filter_of_their_origin_is_asked(manager):
    retry = attrs.evolve(SQL, topic="%RETRY%g")
    properties = {"RETRY_TOPIC": "T", "a": "5"}
    plain = MessageFilter(retry, None, manager)
    asked = MessageFilter(retry, None, manager, support_retry=True)
    assert (plain.matches_properties(properties), asked.matches_properties(properties)) == (True, False)
    assert [asked.matches_properties(one) for one in ({**properties, "a": "6"}, {"a": "5"})] == [True, True]


@pytest.mark.parametrize("topic, group", [("%RETRY%g", "g"), ("%RETRY%g+T", "g"), ("%RETRY%g_T", "g_T")])
def test_groups_of_retry_topics(topic, group):
    assert group_of_retry(topic) == group
