"""The mark of a message's place in a strictly ordered queue, and the fields in which a broker refuses one.

The property ORDERED has the decimal numbers `epoch:queue:leader:base:sequence`, e.g. `7:0:12:41:43`, of an ordered
producer's message; `epoch:queue` where the broker added it to a plain producer's.
"""

from __future__ import annotations

import re

import attrs

ORDER_HEAD = "orderHead"
"""Field of a refusal: the group that takes the sends now, as the broker knows it; absent where none is known."""
ORDER_EPOCH = "orderEpoch"
"""Field of a refusal: the epoch of that group."""
ORDER_TERM = "orderTerm"
"""Field of a committed offset: the epoch whose messages were consumed."""
ORDER_LEADER = "orderLeader"
"""Field of a refusal because another producer leads: that producer's leader term."""
ORDER_EXPECTED = "orderExpected"
"""Field of a refusal because messages before this one are missing: the sequence that the broker takes next."""

_NUMBER = "(0|[1-9][0-9]{0,17})"
FORM = f"{_NUMBER}:{_NUMBER}(?::{_NUMBER}:{_NUMBER}:{_NUMBER})?"
"""The property's text as a regular expression, with a group for each number."""
_FORM = re.compile(FORM)


@attrs.frozen
class OrderMark:
    """The place of one message. Of a plain producer's message `leader`, `base` and `sequence` are 0."""

    epoch: int
    """In which the group that takes it became the head."""
    queue: int
    leader: int = 0
    """Term of the producer that leads."""
    base: int = 0
    """Sequence of the first message that was not acknowledged when the producer began this pipeline."""
    sequence: int = 0
    """Counts the messages of a queue and leader from 1."""

    def encode(self) -> str:
        if not self.sequence:
            return f"{self.epoch}:{self.queue}"
        return f"{self.epoch}:{self.queue}:{self.leader}:{self.base}:{self.sequence}"

    @classmethod
    def decode(cls, text: str) -> OrderMark:
        """Raises ValueError for what has another form, for 0 where counting begins with 1, and for a base above."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"ORDERED is epoch:queue or epoch:queue:leader:base:sequence in numbers, got {text!r}")
        epoch, queue, leader, base, sequence = match.groups()
        if sequence is None:
            return cls(int(epoch), int(queue))
        mark = cls(int(epoch), int(queue), int(leader), int(base), int(sequence))
        if not 1 <= mark.base <= mark.sequence:
            raise ValueError(f"ORDERED has a base from 1 to its sequence, got {text!r}")
        return mark
