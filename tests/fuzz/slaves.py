"""Bytes of a slave to the HA port: reports, handshakes, proofs, of the plain service and of the one that switches."""

from __future__ import annotations

from random import Random

from tests.fuzz import values
from tests.fuzz.frames import damaged
from twisted_mq.protocol.layouts.ha import (
    SWITCH_SLAVE_HANDSHAKE,
    SWITCH_SLAVE_REPORT,
    encode_report,
)
from twisted_mq.protocol.layouts.ha_handshake import PROOF_BYTES, PROOF_OFFSET

DAMAGED = 0.05


class SlaveMaker:
    """Pieces of a slave's stream; the same seed makes the same pieces."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def connection(self, count: int) -> list[bytes]:
        """The pieces of one connection."""
        return [self.frame() for _ in range(count)]

    @staticmethod
    def answers(received: bytes) -> int:
        """None is counted: a master streams its log."""
        return 0

    def frame(self) -> bytes:
        """The next piece."""
        kind = self._random.choice(
            (self._report, self._report, self._report, self._handshake, self._switched, self._proof)
        )
        piece = kind()
        return damaged(self._random, piece) if self._random.random() < DAMAGED else piece

    def _offset(self) -> int:
        """Return a possible end of a log, or an impossible one."""
        limit = 1 << 63
        return (values.number(self._random) + limit) % (2 * limit) - limit

    def _report(self) -> bytes:
        return encode_report(self._offset())

    def _handshake(self) -> bytes:
        random = self._random
        return SWITCH_SLAVE_HANDSHAKE.build(
            {
                "state": random.randrange(-1, 6),
                "sync_from_last_file": random.randrange(2),
                "async_learner": random.randrange(2),
                "broker_id": self._offset(),
            }
        )

    def _switched(self) -> bytes:
        return SWITCH_SLAVE_REPORT.build({"state": self._random.randrange(-1, 6), "max_offset": self._offset()})

    def _proof(self) -> bytes:
        mark = encode_report(PROOF_OFFSET)
        return mark + self._random.randbytes(PROOF_BYTES - len(mark))
