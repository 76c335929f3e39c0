"""Half messages that are to be checked again: rights on their topic, and what names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.access import allow
from tests.support.broker import BrokerInMemory
from tests.support.transactions import half_fields
from tests.twisted_mq.access.test_record_rights import REFUSED, world
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC


@pytest.mark.parametrize(
    ("asked_for", "outcome"), [(True, (16, REFUSED.format("Topic:T"))), (False, (0, None))], ids=["asked", "not"]
)
def test_a_half_message_of_anothers_topic_is_resumed_where_rights_on_records_are_switched_off(
    tmp_path: Path, asked_for: bool, outcome: tuple[int, str | None]
) -> None:
    broker, root, ada = world(tmp_path, record_rights_enable=asked_for, file_reserved_time=1)
    allow(root, "ada", "Cluster:CapCluster", "All")
    root.ask(RequestCode.SEND_MESSAGE_V2, half_fields("K", broker.now_ms()), b"half")
    broker.clock.advance(3601)
    broker.controller.transactions.check()
    broker.clock.pump([0] * 10)
    (record,) = broker.store.get_message(CHECK_MAX_TIME_TOPIC, 0, 0, 1, 1 << 20, None).records
    resume = {"msgId": decode_message(record).msg_id}
    assert ada.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resume) == outcome


@pytest.mark.parametrize("msg_id", ["", "nonsense", "7F0000010000"])
def test_an_id_that_names_no_place_is_refused_with_its_value(msg_id: str) -> None:
    answer = BrokerInMemory().connect().ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": msg_id})
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"msgId {msg_id!r} is not an offset id")
