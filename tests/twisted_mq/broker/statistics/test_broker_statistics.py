"""Statistics by topic and group, as statsAll and consumerProgress show them."""

from __future__ import annotations

import datetime

from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.statistics.counters import Rate

DAY_SECONDS = 86_400.0


def test_statistics_have_apaches_names_and_keys() -> None:
    statistics = BrokerStatistics(0.0)
    statistics.count_put("T", 6, 600, queue_id=0)
    statistics.count_get("T", "G", 3, 300, queue_id=0)
    statistics.sent_back["T@G"].add(1, 100)
    statistics.acks["T@G"].add(2, 0)
    list(statistics.sample(10.0, 10_000))
    minutes = {
        (name, key): windows[0].sum
        for name, key in (
            ("TOPIC_PUT_NUMS", "T"), ("TOPIC_PUT_SIZE", "T"), ("GROUP_GET_NUMS", "T@G"), ("GROUP_GET_SIZE", "T@G"),
            ("SNDBCK_PUT_NUMS", "T@G"), ("GROUP_ACK_NUMS", "T@G"), ("BROKER_PUT_NUMS", "C"), ("BROKER_GET_NUMS", "C"),
            ("BROKER_ACK_NUMS", "C"),
        )
        if (windows := statistics.windows(name, key, "C")) is not None
    }  # fmt: skip
    assert list(minutes.values()) == [6, 600, 3, 300, 1, 2, 6, 3, 2]
    assert statistics.windows("TOPIC_PUT_NUMS", "T", "C") == [Rate(6, 0.6, 6.0), Rate(), Rate()]
    assert statistics.topic_put_tps("T") == 0.6
    assert statistics.group_get_tps("G", "T") == 0.3


def test_unknown_name_or_key_has_no_statistics() -> None:
    statistics = BrokerStatistics(0.0)
    assert statistics.windows("TOPIC_PUT_NUMS", "T", "C") is None
    assert statistics.windows("NO_SUCH_NUMS", "T", "C") is None
    assert statistics.windows("BROKER_PUT_NUMS", "other cluster", "C") is None
    assert (statistics.topic_put_tps("T"), statistics.group_get_tps("G", "T")) == (0.0, 0.0)
    assert "T" not in statistics.puts


def test_system_topics_are_left_out_of_the_days_totals() -> None:
    statistics = BrokerStatistics(12 * 3600.0, zone=datetime.UTC)
    statistics.count_put("T", 5, 1, queue_id=0)
    statistics.count_put("SCHEDULE_TOPIC_XXXX", 7, 1, queue_id=0)
    statistics.count_get("T", "G", 2, 1, queue_id=0)
    list(statistics.sample(DAY_SECONDS + 1, (DAY_SECONDS + 1) * 1000))
    statistics.count_put("T", 1, 1, queue_id=0)
    list(statistics.sample(2 * DAY_SECONDS + 1, (2 * DAY_SECONDS + 1) * 1000))
    day = statistics.day
    assert (day.put_yesterday_morning, day.put_this_morning) == (5, 6)
    assert (day.get_yesterday_morning, day.get_this_morning) == (2, 2)
    assert statistics.windows("BROKER_PUT_NUMS", "C", "C")[0].sum == 13
    assert statistics.windows("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "C", "C")[0].sum == 6


def test_deleted_topics_and_groups_are_forgotten_without_lowering_the_totals() -> None:
    statistics = BrokerStatistics(0.0)
    statistics.count_put("T", 5, 50, queue_id=0)
    statistics.count_get("T", "G", 5, 50, queue_id=0)
    statistics.count_get("U", "G", 5, 50, queue_id=0)
    statistics.forget_topic("T")
    statistics.forget_group("G")
    assert set(statistics.puts) | set(statistics.gets) == {""}
    assert (statistics.user_messages(statistics.puts), statistics.user_messages(statistics.gets)) == (5, 10)


def test_latencies_stand_under_queue_topic_and_group() -> None:
    statistics = BrokerStatistics(0.0)
    statistics.puts["T"][3].add(2, 200, 30)
    statistics.puts["T"][3].add(1, 100, 10)
    statistics.count_get("T", "G", 3, 300, queue_id=3, elapsed_ms=8)
    list(statistics.sample(10.0, 10_000))
    found = {
        (name, key): (windows[0].sum, windows[0].average)
        for name, key in (
            ("TOPIC_PUT_LATENCY", "3@T"), ("QUEUE_PUT_NUMS", "T@3"), ("QUEUE_PUT_SIZE", "T@3"),
            ("GROUP_GET_LATENCY", "3@T@G"), ("QUEUE_GET_NUMS", "T@3@G"), ("QUEUE_GET_SIZE", "T@3@G"),
        )
        if (windows := statistics.windows(name, key, "C")) is not None
    }  # fmt: skip
    assert list(found.values()) == [(40, 20.0), (3, 1.5), (300, 150.0), (8, 8.0), (3, 3.0), (300, 300.0)]


def test_keys_of_another_form_have_no_statistics() -> None:
    statistics = BrokerStatistics(0.0)
    statistics.puts["T"][3].add(2, 200, 30)
    keys = ("", "T", "T@x", "x@T", "-1@T", "T@U@V@W", "@", f"T@{'9' * 5000}", f"{'9' * 5000}@T")
    for name in ("TOPIC_PUT_LATENCY", "QUEUE_PUT_NUMS", "GROUP_GET_LATENCY"):
        assert [statistics.windows(name, key, "C") for key in keys] == [None] * len(keys)
    assert list(statistics.puts) == ["T"]
