"""The classes of apache.rocketmq.v2's messages, made from the table in `schema` when this module is imported.

A process may also import Apache's Python client, which brings the same names.
"""

from __future__ import annotations

from typing import Any

from twisted_mq.proxy.grpc.descriptors import MethodTypes, service
from twisted_mq.proxy.schema import TABLE

METHODS: dict[str, MethodTypes] = {
    **{
        name: (f"{name}Request", f"{name}Response", False, name in ("ReceiveMessage", "PullMessage"))
        for name in (
            "QueryRoute", "Heartbeat", "SendMessage", "QueryAssignment", "ReceiveMessage", "AckMessage",
            "ForwardMessageToDeadLetterQueue", "PullMessage", "UpdateOffset", "GetOffset", "QueryOffset",
            "EndTransaction", "NotifyClientTermination", "ChangeInvisibleDuration", "RecallMessage",
            "SyncLiteSubscription",
        )
    },
    "Telemetry": ("TelemetryCommand", "TelemetryCommand", True, True),
}  # fmt: skip
"""Name -> request, answer, whether the client streams, whether the server does."""

MESSAGING = service("apache/rocketmq/v2/service.proto", "apache.rocketmq.v2.MessagingService", METHODS, TABLE)
SERVICE = MESSAGING.name
POOL = MESSAGING.file.pool
message_class = MESSAGING.message


def __getattr__(name: str) -> Any:
    """Return a message or an enum by its name: `messages.Resource`, `messages.Code`."""
    if name in MESSAGING.file.message_types_by_name:
        made = MESSAGING.message(name)
    elif name in MESSAGING.file.enum_types_by_name:
        made = MESSAGING.enum(name)
    else:
        raise AttributeError(name)
    globals()[name] = made
    return made
