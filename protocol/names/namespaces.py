"""Names with a namespace, `space%name`, which keep the topics and groups of one space apart (Apache: NamespaceUtil).

Clients add and remove the namespace; brokers see the whole names. `%RETRY%` and `%DLQ%` stand before it.
"""

from __future__ import annotations

from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

SEPARATOR = "%"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
"""MixAll.CID_RMQ_SYS_PREFIX: groups of the servers, which have no namespace"""


def _split(name: str) -> tuple[str, str]:
    """Return the prefix of a retry or dead letter topic, empty for others, and the rest."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name


def with_namespace(namespace: str, name: str) -> str:
    """Return a topic's or group's name as brokers see it; names of the system, and those with the namespace, stay."""
    prefix, rest = _split(name)
    if not namespace or not name or is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX):
        return name
    return name if rest.startswith(namespace + SEPARATOR) else f"{prefix}{namespace}{SEPARATOR}{rest}"


def without_namespace(namespace: str, name: str) -> str:
    """Return a topic's or group's name as users of the namespace know it; names of other namespaces stay."""
    prefix, rest = _split(name)
    return prefix + rest.removeprefix(namespace + SEPARATOR) if namespace else name
