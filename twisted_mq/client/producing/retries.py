"""Decides when a failed send is retried: plain values in, seconds to wait out.

A send is retried until its deadline: from broker to broker without a pause, and with a growing pause after each round.
Apache's DefaultMQProducerImpl stops after three tries, however short they were.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Collection, Set

import attrs

from twisted_mq.client.core.errors import BrokerError, BrokerGone, NameServerUnreachable
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.remoting.errors import RemotingError

FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 0.05, 0.5
FEW = 2
"""Retries after a failure that does not pass with time (Apache: retryTimesWhenSendFailed)."""

PASSING_CODES = frozenset(
    {
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.GO_AWAY,
    }
)
"""Refusals of a broker that starts, stops or is overloaded."""


class Again(enum.Enum):
    """The number of retries that a failure allows."""

    NEVER = enum.auto()
    FEW_TIMES = enum.auto()
    WHILE_TIME_REMAINS = enum.auto()


def again(error: Exception, retry_codes: Set[int]) -> Again:
    """Return how many retries the failure allows; `retry_codes` are refusals that another broker may not give."""
    if isinstance(error, BrokerError):
        if error.response_code not in retry_codes:
            return Again.NEVER
        return Again.WHILE_TIME_REMAINS if error.response_code in PASSING_CODES else Again.FEW_TIMES
    passing = isinstance(error, (RemotingError, BrokerGone, NameServerUnreachable))
    return Again.WHILE_TIME_REMAINS if passing else Again.NEVER


@attrs.define
class Retries:
    """The tries of one send. `most` limits the retries; None leaves that to the deadline."""

    deadline: float
    most: int | None
    rng: random.Random
    brokers: list[str] = attrs.Factory(list)
    """The names of the brokers tried, in order."""
    _lasting: int = 0
    _failures: int = 0
    _rests: int = 0
    _since_rest: set[str] = attrs.Factory(set)

    @property
    def last(self) -> str | None:
        """The broker of the last try; None before the first."""
        return self.brokers[-1] if self.brokers else None

    def failed(self, broker: str | None, kind: Again, brokers: Collection[str], now: float) -> float | None:
        """Note a failed try. Return the seconds until the next one, or None if no try is left.

        `broker` is None if none was found. `brokers` are the names of the brokers that the next try may use.
        """
        self._failures += 1
        self._lasting += kind is Again.FEW_TIMES
        if broker is not None:
            self.brokers.append(broker)
            self._since_rest.add(broker)
        if self.most is None:
            ended = kind is Again.NEVER or self._lasting > FEW
        else:
            ended = kind is Again.NEVER or self._failures > self.most
        if ended:
            return None
        rest = self._rest(brokers)
        return rest if now + rest < self.deadline else None

    def _rest(self, brokers: Collection[str]) -> float:
        """Return the pause: 0 while a broker is left that has not failed since the last pause."""
        if not self._since_rest.issuperset(brokers):
            return 0.0
        self._since_rest.clear()
        longest = min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2.0 ** min(self._rests, 10))
        self._rests += 1
        return longest * self.rng.uniform(0.5, 1.0)
