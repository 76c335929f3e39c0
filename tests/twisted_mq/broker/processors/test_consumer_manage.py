"""Offsets and locks over the wire: the rules for the answers to a group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker import BrokerInMemory, MemoryTable
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.processors.consumer_manage import MOST_UNKNOWN_QUEUES
from twisted_mq.protocol.bodies import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    SubscriptionGroupConfig,
    TopicConfig,
    UnlockBatchRequestBody,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.storage.interfaces import InnerMessage

QUERY, UPDATE = RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET
NOT_FOUND = (ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", {})
NOT_ZERO = (ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first", {})
QUEUES = [MessageQueue(topic="T", broker_name="broker-cap", queue_id=number) for number in range(3)]


def broker_with(messages: int = 0, **options: Any) -> BrokerInMemory:
    broker = BrokerInMemory(**options)
    broker.controller.topics.update([TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4)])
    for _ in range(messages):
        broker.store.put_message(InnerMessage("T", 0, b"body", b"", {}, 0))
        broker.controller.dispatch()
        broker.clock.advance(1)
    return broker


def ask(broker: BrokerInMemory, code: int, **fields: str) -> tuple[int, str | None, dict[str, str]]:
    answer = broker.connect().ask(code, {"topic": "T", "queueId": "0", **fields})
    return answer.code, answer.remark, dict(answer.ext_fields)


def test_a_committed_offset_is_told_also_when_it_went_back() -> None:
    broker = broker_with(3)
    for offset in ("2", "1"):
        assert ask(broker, UPDATE, consumerGroup="G", commitOffset=offset) == (0, None, {})
        assert ask(broker, QUERY, consumerGroup="G") == (0, None, {"offset": offset})
    assert broker.controller.offsets.offsets == {"T@G": {0: 1}}
    assert broker.tables["offsets"].saved == 0
    broker.controller.offsets.save()
    broker.controller.offsets.save()
    assert broker.tables["offsets"].saved == 1


def test_a_new_group_begins_at_0_while_the_first_message_is_at_hand() -> None:
    broker = broker_with(1)
    assert ask(broker, QUERY, consumerGroup="G") == (0, None, {"offset": "0"})
    assert ask(broker, QUERY, consumerGroup="G", setZeroIfNotFound="true") == (0, None, {"offset": "0"})
    assert ask(broker, QUERY, consumerGroup="G", setZeroIfNotFound="false") == NOT_ZERO


def test_a_new_group_on_a_queue_whose_first_messages_are_deleted_is_told_that_there_is_nothing() -> None:
    broker = broker_with(2)
    broker.store.min_offset_in_queue = lambda topic, queue_id: 1
    assert ask(broker, QUERY, consumerGroup="G") == NOT_FOUND


def test_a_new_group_on_an_empty_queue_starts_at_zero() -> None:
    """Told that there is nothing it would ask for the greatest offset, and miss what arrives in between."""
    assert ask(broker_with(1), QUERY, consumerGroup="G", queueId="1") == (0, None, {"offset": "0"})


@pytest.mark.parametrize("fields", [{"queueId": "99"}, {"topic": "Unknown"}])
def test_a_new_group_on_a_queue_that_is_not_there_is_told_that_there_is_nothing(fields: dict[str, str]) -> None:
    assert ask(broker_with(1), QUERY, consumerGroup="G", **fields) == NOT_FOUND


def test_offsets_of_unknown_topics_and_groups_are_refused() -> None:
    broker = broker_with(auto_create_subscription_group=False)
    broker.controller.groups.update(SubscriptionGroupConfig(group_name="G"))
    commit = {"commitOffset": "1"}
    assert ask(broker, UPDATE, consumerGroup="H", **commit) == (26, "Group H not exist!", {})
    assert ask(broker, UPDATE, consumerGroup="G", topic="U", **commit) == (17, "Topic U not exist!", {})
    assert broker.controller.offsets.offsets == {}


def test_only_so_many_offsets_of_queues_that_are_not_there_are_noted() -> None:
    broker = broker_with()
    codes = [ask(broker, UPDATE, consumerGroup="G", queueId=str(1000 + n), commitOffset="1")[0] for n in range(100)]
    most = MOST_UNKNOWN_QUEUES + broker.controller.topics.queue_count("T")
    assert codes == [0] * most + [29] * (100 - most)
    assert broker.controller.offsets.queue_count("G", "T") == most
    assert ask(broker, UPDATE, consumerGroup="G", queueId="0", commitOffset="1")[0] == 0


def test_only_queues_that_are_there_are_locked() -> None:
    broker = broker_with()
    queues = [
        MessageQueue(topic=topic, broker_name="b", queue_id=number)
        for topic, number in (("T", 0), ("T", 999), ("U", 0))
    ]
    body = encode_body(LockBatchRequestBody(consumer_group="G", client_id="c", mq_set=queues))
    answer = broker.connect().ask(RequestCode.LOCK_BATCH_MQ, body=body)
    assert decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set == queues[:1]


class FullDisk(MemoryTable):
    full = True

    def save(self) -> bool:
        if self.full:
            raise OSError("disk full")
        return super().save()


def test_a_table_that_could_not_be_written_is_tried_again() -> None:
    table = FullDisk()
    offsets = ConsumerOffsetManager(table, table.save, lambda topic, queue_id: 1)
    offsets.commit("G", "T", 0, 1)
    with pytest.raises(OSError, match="disk full"):
        offsets.save()
    table.full = False
    offsets.save()
    assert table.saved == 1


def test_the_ends_of_a_queue_and_the_time_of_its_first_message() -> None:
    broker = broker_with()
    start = broker.now_ms()
    assert ask(broker, RequestCode.GET_MAX_OFFSET) == (0, None, {"offset": "0"})
    assert ask(broker, RequestCode.GET_EARLIEST_MSG_STORETIME) == (0, None, {"timestamp": "-1"})
    for _ in range(3):
        broker.store.put_message(InnerMessage("T", 0, b"body", b"", {}, 0))
        broker.controller.dispatch()
        broker.clock.advance(1)
    assert ask(broker, RequestCode.GET_MAX_OFFSET) == (0, None, {"offset": "3"})
    assert ask(broker, RequestCode.GET_MIN_OFFSET) == (0, "", {"offset": "0"})
    assert ask(broker, RequestCode.GET_EARLIEST_MSG_STORETIME) == (0, None, {"timestamp": str(start)})


@pytest.mark.parametrize(("after_ms", "offset"), [(-1, "0"), (0, "0"), (1, "1"), (1000, "1"), (2000, "2")])
def test_an_offset_is_found_by_time(after_ms: int, offset: str) -> None:
    broker = broker_with()
    start = broker.now_ms()
    for _ in range(3):
        broker.store.put_message(InnerMessage("T", 0, b"body", b"", {}, 0))
        broker.controller.dispatch()
        broker.clock.advance(1)
    found = ask(broker, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=str(start + after_ms))
    assert found == (0, None, {"offset": offset})


@pytest.mark.parametrize(
    ("fields", "offset"), [({}, "0"), ({"boundaryType": "LOWER"}, "0"), ({"boundaryType": "UPPER"}, "2")]
)
def test_boundary_tells_which_message_of_a_time_is_found(fields: dict[str, str], offset: str) -> None:
    broker = broker_with()
    for _ in range(3):
        broker.store.put_message(InnerMessage("T", 0, b"body", b"", {}, 0))
    broker.controller.dispatch()
    search = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
    assert ask(broker, search, timestamp=str(broker.now_ms()), **fields) == (0, None, {"offset": offset})


@pytest.mark.parametrize(
    "code",
    [QUERY, UPDATE, RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP],
)
def test_a_header_without_its_fields_is_refused_by_name(code: int) -> None:
    answer = broker_with().connect().ask(code, {"queueId": "0"})
    assert (answer.code, "required, but missing" in (answer.remark or "")) == (ResponseCode.SYSTEM_ERROR, True)


# locks


def lock(broker: BrokerInMemory, client: str, queues: list[MessageQueue]) -> list[int]:
    body = LockBatchRequestBody(consumer_group="G", client_id=client, mq_set=queues)
    answer = broker.connect().ask(RequestCode.LOCK_BATCH_MQ, body=encode_body(body))
    assert answer.code == 0
    return sorted(queue.queue_id for queue in decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set)


def test_a_queue_is_held_by_one_client_until_it_is_freed_or_60_s_went_by() -> None:
    broker = broker_with()
    assert lock(broker, "c1", QUEUES[:2]) == [0, 1]
    assert lock(broker, "c2", QUEUES) == [2]
    body = UnlockBatchRequestBody(consumer_group="G", client_id="c2", mq_set=QUEUES)
    assert broker.connect().ask(RequestCode.UNLOCK_BATCH_MQ, body=encode_body(body)).code == 0
    assert lock(broker, "c1", QUEUES) == [0, 1, 2]
    broker.clock.advance(60)
    assert lock(broker, "c2", QUEUES) == []
    broker.clock.advance(0.001)
    assert lock(broker, "c2", QUEUES) == [0, 1, 2]


@pytest.mark.parametrize("code", [RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ])
def test_a_lock_that_cannot_be_read_is_refused(code: int) -> None:
    answer = broker_with().connect().ask(code, body=b"{")
    assert (answer.code, bool(answer.remark)) == (ResponseCode.SYSTEM_ERROR, True)


@pytest.mark.parametrize(("length", "code"), [(255, 0), (256, ResponseCode.INVALID_PARAMETER)])
def test_names_of_groups_that_lock_are_bounded(length: int, code: int) -> None:
    body = LockBatchRequestBody(consumer_group="G" * length, client_id="c", mq_set=QUEUES[:1])
    assert broker_with().connect().ask(RequestCode.LOCK_BATCH_MQ, body=encode_body(body)).code == code
