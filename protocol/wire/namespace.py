"""The namespace a request is for, as fields beside its names (Apache: NamespaceRpcHook, ClientConfig.namespaceV2).

    namespace "space" -> {"nsd":"true","ns":"space"}

Names stay as they are; a proxy or a broker that knows the fields keeps the spaces apart. 5.3.3's own broker passes them by.
"""

from __future__ import annotations

from twisted_mq.protocol.wire.command import RemotingCommand

NAMESPACE = "ns"
"""MixAll.RPC_REQUEST_HEADER_NAMESPACE_FIELD"""
NAMESPACED = "nsd"
"""MixAll.RPC_REQUEST_HEADER_NAMESPACED_FIELD"""


def add_namespace(command: RemotingCommand, namespace: str) -> None:
    """Add the fields, in place of what the command had of them."""
    command.replace_fields({**command.ext_fields, NAMESPACED: "true", NAMESPACE: namespace})
