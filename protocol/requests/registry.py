"""All request codes of 5.3.3 with their headers, bodies and servers; what a process serves is checked against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import attrs

from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.admin import ADMIN
from twisted_mq.protocol.requests.core import CORE
from twisted_mq.protocol.requests.replication import CONTROLLER, HA
from twisted_mq.protocol.requests.since_5 import AUTH, OTHER, POP
from twisted_mq.protocol.requests.spec import Payload as Payload
from twisted_mq.protocol.requests.spec import RequestSpec as RequestSpec

Processor = TypeVar("Processor")

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


def serving_table(role: str, *tables: Mapping[RequestCode, Processor]) -> dict[int, Processor]:
    """Return everything that a process serves, by the code as a frame has it.

    Raises ValueError for a request of another role, and for one that two of the tables serve.
    """
    serving: dict[int, Processor] = {}
    for code, processor in (entry for table in tables for entry in table.items()):
        if role not in REQUESTS[code].served_by:
            raise ValueError(f"{code.name} is not a request to a {role}")
        if int(code) in serving:
            raise ValueError(f"{code.name} is served twice")
        serving[int(code)] = processor
    return serving
