"""The values that all parts of one proxy share."""

from __future__ import annotations

import attrs
from twisted.internet import interfaces

from twisted_mq.proxy.brokers import Brokers
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.remoting.rotation import Rotation


@attrs.frozen(eq=False)
class Parts:
    """The settings, brokers and clock of a proxy. `max_body_bytes` is the limit of a message's body, `rotation`
    shares out the reactor's time.
    """

    options: ProxyOptions
    brokers: Brokers
    clock: interfaces.IReactorTime
    max_body_bytes: int
    rotation: Rotation = attrs.field(default=attrs.Factory(lambda self: Rotation(self.clock), takes_self=True))

    def now_ms(self) -> int:
        """Return the wall clock's time in ms."""
        return int(self.clock.seconds() * 1000)
