"""The classes that a request code demands of both sides."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeAlias

import attrs

from twisted_mq.protocol.headers.fields import HeaderClass


class Payload(enum.Enum):
    """Bodies that are no JSON of a body class."""

    MESSAGE_BODY = "raw message body bytes"
    BATCH = "batch encoding (client-side message list)"
    MESSAGE = "one message (store encoding)"
    MESSAGES = "messages (store encoding, concatenated)"
    PROPERTIES = "text: java properties (k=v lines)"
    GROUP_NAME = "text: consumer group name"
    JSON_OBJECT = "JSON object text"
    TIMER_CHECKPOINT = "binary TimerCheckpoint (7 longs, 56 bytes)"


Body: TypeAlias = type | Payload | None


@attrs.frozen
class RequestSpec:
    """Classes of both headers and bodies, None if the code has none; a body may be `list[...]` or a Payload.

    `served_by`: broker, namesrv, client, controller, container; controller-internal for entries of its raft log; empty
    where nothing in 5.3.3 serves the code. `one_way`: Apache sends it without waiting for an answer (other clients may
    wait all the same). `tier`: which part of RocketMQ needs it.
    """

    request_header: HeaderClass | None = None
    response_header: HeaderClass | None = None
    request_body: Body = None
    response_body: Body = None
    one_way: bool = False
    served_by: tuple[str, ...] = ()
    tier: str = ""


def served_by(*roles: str) -> Callable[..., RequestSpec]:
    """Return a maker of specs for codes that these roles serve."""

    def spec(
        request_header: HeaderClass | None = None,
        response_header: HeaderClass | None = None,
        request_body: Body = None,
        response_body: Body = None,
        *,
        one_way: bool = False,
    ) -> RequestSpec:
        return RequestSpec(request_header, response_header, request_body, response_body, one_way, roles)

    return spec


broker = served_by("broker")
namesrv = served_by("namesrv")
client = served_by("client")
controller = served_by("controller")
container = served_by("container")
unserved = served_by()
