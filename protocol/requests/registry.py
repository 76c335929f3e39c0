"""All request codes of 5.3.3 with their headers, bodies and servers; what a process serves is checked against them."""

from __future__ import annotations

import attrs

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.admin import ADMIN
from twisted_mq.protocol.requests.core import CORE
from twisted_mq.protocol.requests.replication import CONTROLLER, HA
from twisted_mq.protocol.requests.since_5 import AUTH, OTHER, POP
from twisted_mq.protocol.requests.spec import Payload as Payload
from twisted_mq.protocol.requests.spec import RequestSpec as RequestSpec

_TIERS = {
    "4.x core": CORE,
    "4.x admin": ADMIN,
    "pop": POP,
    "auth": AUTH,
    "ha": HA,
    "controller": CONTROLLER,
    "lite/other 5.x": OTHER,
}

REQUESTS: dict[RequestCode, RequestSpec] = {
    code: attrs.evolve(spec, tier=tier) for tier, table in _TIERS.items() for code, spec in table.items()
}
