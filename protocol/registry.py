"""All request codes of 5.3.3 with their headers, bodies and servers."""

from __future__ import annotations

import attrs

from protocol.codes import RequestCode
from protocol.request_spec import Payload as Payload
from protocol.request_spec import RequestSpec as RequestSpec
from protocol.request_tables.admin import ADMIN
from protocol.request_tables.controller import CONTROLLER
from protocol.request_tables.core import CORE
from protocol.request_tables.later import AUTH, HA, OTHER, POP

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
