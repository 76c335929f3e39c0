"""Every served code with one thing wrong: what is refused says why, and changes nothing.

`interop/test_bad_requests.py` compares the codes with those of Apache's broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.logger import LogLevel, globalLogPublisher

from interop.bad_requests import bad_requests, is_malformed
from tests.support.broker import BrokerInMemory
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.requests.registry import REQUESTS

READ_AS_ZERO = ("POP_MESSAGE with no bornTime", "NOTIFICATION with no bornTime")
"""Older clients leave it out."""
NOT_READ = ("CHECK_ROCKSDB_CQ_WRITE_PROGRESS with no topic",)
"""The answer is the same for all topics, at Apache's broker too."""


def state(broker: BrokerInMemory) -> tuple[Any, ...]:
    """All that requests may change and a restart keeps."""
    topics, groups, offsets = (broker.tables[name] for name in ("topics", "groups", "offsets"))
    tables = (topics.topics, groups.groups, groups.forbidden, offsets.offsets)
    return (*map(repr, tables), broker.store.max_physical_offset())


@pytest.fixture
def failures() -> Iterator[list[str]]:
    """Record failures of the broker in the log."""
    seen: list[str] = []

    def note(event: dict[str, Any]) -> None:
        if event["log_level"] >= LogLevel.critical:
            seen.append(str(event.get("log_failure")))

    globalLogPublisher.addObserver(note)
    yield seen
    globalLogPublisher.removeObserver(note)


def test_what_is_refused_says_why_and_changes_nothing(failures: list[str]) -> None:
    """Topics and groups are not made by themselves, nor replies stored: both would be asked for by the options."""
    broker = BrokerInMemory(
        enable_property_filter=True, auto_create_subscription_group=False, store_reply_message_enable=False
    )
    peer = broker.connect()
    send(peer)
    broker.options.auto_create_topic_enable = False
    group = encode_body(SubscriptionGroupConfig(group_name="G"))
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group).code == 0
    consumer = broker.connect()
    heartbeat(consumer, "G", "T")
    consumer.channel.connectionLost()
    served = broker.processors
    seen, wrong = set(), list[str]()
    for request in bad_requests(served, "T", "G"):
        before = state(broker)
        answer = peer.ask(request.code, request.fields, request.body, version=479)
        seen.add(request.code)
        if is_malformed(request) and request.name not in READ_AS_ZERO + NOT_READ:
            header, field = REQUESTS[request.code].request_header, request.what.removeprefix("no ").partition("=")[0]
            assert header is not None
            if answer.code != ResponseCode.SYSTEM_ERROR or f"{header.__name__}.{field}: " not in str(answer.remark):
                wrong.append(f"{request.name}: {answer.code} {answer.remark}")
        if answer.code != ResponseCode.SUCCESS and (not answer.remark or state(broker) != before):
            wrong.append(f"{request.name}: {answer.code} {answer.remark}, and something changed or nothing was said")
    assert "\n".join(wrong) == ""
    assert failures == []
    assert len(seen) > 50
