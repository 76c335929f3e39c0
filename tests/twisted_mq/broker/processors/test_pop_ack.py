"""The turns that a batch of acknowledgements takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pop import BROKER_NAME, PopDesk
from tests.twisted_mq.broker.test_long_answers import turn
from twisted_mq.broker.processors.pop_ack import ACK_COST, BITS_OF_SLICE
from twisted_mq.protocol.bodies import BatchAck, BatchAckMessageRequestBody, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

BITS = "A" * 8000
OF_SLICE = BITS_OF_SLICE // len(BITS) + 1
"""The entries of a slice."""
ENTRIES = 16
BITS_OF_EQUAL = "A" * (BITS_OF_SLICE // ENTRIES - ACK_COST)
"""That many entries with these bits are just a slice's limit."""


@pytest.mark.parametrize(
    ("entries", "bit_set", "more_turns"),
    [
        (OF_SLICE, BITS, 0),
        (OF_SLICE + 1, BITS, 1),
        (ENTRIES + 1, BITS_OF_EQUAL, 0),
        (ENTRIES + 2, BITS_OF_EQUAL, 1),
    ],
)
def test_long_bit_sets_beyond_a_slice_are_read_in_another_turn(
    tmp_path: Path, entries: int, bit_set: str, more_turns: int
) -> None:
    """Others have theirs between. These sets have no bits."""
    desk = PopDesk(tmp_path)
    desk.send("a")
    desk.controller.pop.stop()
    desk.controller.waiting.stop()
    while turn(desk.broker.clock):
        pass
    ack = BatchAck(consumer_group="G", topic="T", retry="0", start_offset=0, queue_id=0, revive_queue_id=0,
                   pop_time=desk.now, invisible_time=10_000, bit_set=bit_set)  # fmt: skip
    body = encode_body(BatchAckMessageRequestBody(BROKER_NAME, [ack] * entries))
    desk.peer.send(RemotingCommand(RequestCode.BATCH_ACK_MESSAGE, body=body))
    turns = 0
    while not (answers := desk.peer.received()):
        assert turn(desk.broker.clock)
        turns += 1
    assert ([one.code for one in answers], turns) == ([0], more_turns)
