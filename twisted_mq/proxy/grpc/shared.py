"""The state that all connections of one gRPC server share: its methods, limits, budget and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import attrs
from twisted.internet import interfaces

from twisted_mq.proxy.grpc.calls import Method, Methods
from twisted_mq.proxy.grpc.limits import ConnectionLimits
from twisted_mq.proxy.grpc.peer import GrpcPeer
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.rotation import Rotation


@attrs.define(eq=False)
class Shared:
    """The state that all connections of one server share. `calls` is the number of open calls."""

    methods: Methods
    clock: interfaces.IReactorTime
    limits: ConnectionLimits = attrs.field(factory=ConnectionLimits)
    budget: Budget[GrpcPeer] = attrs.field(factory=Budget)
    rotation: Rotation = attrs.field(default=attrs.Factory(lambda self: Rotation(self.clock), takes_self=True))
    calls: int = 0
    ended: Counter[int] = attrs.field(factory=Counter)
    """The number of calls that the server ended, by their gRPC status."""
    stopping: bool = False
    end_of_read: Callable[[], object] | None = None
    """Called when the calls of a read were handled, before their answers leave."""
    together: Mapping[bytes, Method] = attrs.field(init=False)
    """The methods that handle several calls together, by encoded path."""

    def __attrs_post_init__(self) -> None:
        self.together = {path.encode(): one for path, one in self.methods.items() if one.together is not None}
