"""What all parts of one proxy share."""

from __future__ import annotations

import attrs
from twisted.internet import interfaces

from twisted_mq.proxy.brokers import Brokers
from twisted_mq.proxy.options import ProxyOptions


@attrs.frozen(eq=False)
class Parts:
    """Settings, brokers and time. `max_body_bytes` is the most that a message's body may have."""

    options: ProxyOptions
    brokers: Brokers
    clock: interfaces.IReactorTime
    max_body_bytes: int

    def now_ms(self) -> int:
        """Wall clock in ms."""
        return int(self.clock.seconds() * 1000)
