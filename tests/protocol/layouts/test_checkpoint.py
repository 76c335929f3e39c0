from __future__ import annotations

import pytest

from tests.support.captures import STORES, expected, stored_file
from twisted_mq.protocol.layouts.checkpoint import CHECKPOINT, CHECKPOINT_FILE_BYTES, TIMER_CHECKPOINT
from twisted_mq.protocol.layouts.derive import derive_struct


@pytest.mark.parametrize("store", [store for store in STORES if store not in ("cut_tail", "livecopy")])
def test_a_recorded_checkpoint_reads_as_apache_read_it(store: str) -> None:
    content = stored_file(store, "checkpoint")
    (line,) = [line for line in expected(store) if line["kind"] == "store"]
    parsed = CHECKPOINT.parse(content)
    assert (parsed.physic_msg_timestamp, parsed.logics_msg_timestamp, parsed.index_msg_timestamp) == (
        line["checkpoint_physicMsgTimestamp"],
        line["checkpoint_logicsMsgTimestamp"],
        line["checkpoint_indexMsgTimestamp"],
    )


@pytest.mark.parametrize("store", STORES)
def test_a_recorded_checkpoint_packs_again(store: str) -> None:
    content = stored_file(store, "checkpoint")
    numbers = derive_struct(CHECKPOINT)
    packed = numbers.pack(*numbers.unpack_from(content))
    assert packed.ljust(CHECKPOINT_FILE_BYTES, b"\0") == content


def test_the_timer_s_checkpoint_has_seven_numbers() -> None:
    assert derive_struct(TIMER_CHECKPOINT).unpack(bytes(55) + b"\x07") == (0, 0, 0, 0, 0, 0, 7)


def test_the_timer_s_numbers_have_apache_s_order() -> None:
    content = b"".join(number.to_bytes(8, "big") for number in range(1, 8))
    assert (
        TIMER_CHECKPOINT.build(
            {
                "last_read_time_ms": 1,
                "last_timer_log_flush_position": 2,
                "last_timer_queue_offset": 3,
                "master_timer_queue_offset": 4,
                "state_version": 5,
                "timestamp": 6,
                "counter": 7,
            }
        )
        == content
    )
