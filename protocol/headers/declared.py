"""Header classes that no code names, as rows of a table: those of the controller, of its log and of broker containers, and
those without fields.

The registry of requests has them by name. Captures are read with them, and a signed request is checked for their fields
(`access.fitting`). A row has the fields as Java declares them; `!` marks a required one (Apache: CFNotNull).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs

from twisted_mq.protocol.headers.base import RpcRequestHeader, TopicQueueRequestHeader, TopicRequestHeader
from twisted_mq.protocol.headers.fields import HeaderClass, Metadata, boolean, int32, int64, text

_TYPES: dict[str, tuple[Callable[[str], Metadata], type, object]] = {
    "String": (text, str, None),
    "Integer": (int32, int, None),
    "int": (int32, int, 0),
    "Long": (int64, int, None),
    "long": (int64, int, 0),
    "boolean": (boolean, bool, False),
}
"""Java's type -> what declares a field, Python's type, and the value of an absent field."""

ROWS = {
    # the controller
    "AlterSyncStateSetRequestHeader": "String brokerName, Long masterBrokerId, Integer masterEpoch, long invokeTime",
    "AlterSyncStateSetResponseHeader": "int newSyncStateSetEpoch",
    "ApplyBrokerIdRequestHeader": "String clusterName, String brokerName, Long appliedBrokerId, String registerCheckCode",
    "ApplyBrokerIdResponseHeader": "String clusterName, String brokerName",
    "CleanControllerBrokerDataRequestHeader": (
        "String clusterName, String brokerName!, String brokerControllerIdsToClean, boolean isCleanLivingBroker,"
        " long invokeTime"
    ),
    "ElectMasterRequestHeader": (
        "String clusterName!, String brokerName!, Long brokerId!, boolean designateElect!, Long invokeTime"
    ),
    "ElectMasterResponseHeader": (
        "Long masterBrokerId, String masterAddress, Integer masterEpoch, Integer syncStateSetEpoch"
    ),
    "GetMetaDataResponseHeader": (
        "String group, String controllerLeaderId, String controllerLeaderAddress, boolean isLeader, String peers"
    ),
    "GetNextBrokerIdRequestHeader": "String clusterName, String brokerName",
    "GetNextBrokerIdResponseHeader": "String clusterName, String brokerName, Long nextBrokerId",
    "GetReplicaInfoRequestHeader": "String brokerName",
    "GetReplicaInfoResponseHeader": "Long masterBrokerId, String masterAddress, Integer masterEpoch",
    "NotifyBrokerRoleChangedRequestHeader": (
        "String masterAddress, Integer masterEpoch, Integer syncStateSetEpoch, Long masterBrokerId"
    ),
    "RegisterBrokerToControllerRequestHeader": (
        "String clusterName, String brokerName, Long brokerId, String brokerAddress, long invokeTime"
    ),
    "RegisterBrokerToControllerResponseHeader": (
        "String clusterName, String brokerName, Long masterBrokerId, String masterAddress, Integer masterEpoch,"
        " Integer syncStateSetEpoch"
    ),
    # entries of the controller's raft log (Apache: org.apache.rocketmq.controller.impl.task)
    "BrokerCloseChannelRequest": "String clusterName, String brokerName, Long brokerId",
    "BrokerCloseChannelResponse": "",
    "CheckNotActiveBrokerRequest": "Long checkTimeMillis",
    "CheckNotActiveBrokerResponse": "",
    "GetBrokerLiveInfoRequest": "String clusterName, String brokerName, Long brokerId",
    "GetBrokerLiveInfoResponse": "",
    "GetSyncStateDataRequest": "Long invokeTime",
    "RaftBrokerHeartBeatEventRequest": (
        "String clusterNameIdentityInfo, String brokerNameIdentityInfo, Long brokerIdIdentityInfo, String brokerName,"
        " String brokerAddr, Long heartbeatTimeoutMillis, Long brokerId, Long lastUpdateTimestamp, Integer epoch,"
        " Long maxOffset, Long confirmOffset, Integer electionPriority"
    ),
    "RaftBrokerHeartBeatEventResponse": "",
    # broker containers
    "AddBrokerRequestHeader": "String configPath",
    "RemoveBrokerRequestHeader": "String brokerName!, String brokerClusterName!, Long brokerId!",
    # requests and answers that have no fields of their own
    "GetAllTopicConfigResponseHeader": "",
    "GetConsumerListByGroupResponseHeader": "",
    "HeartbeatRequestHeader": "",
    "LockBatchMqRequestHeader": "",
    "UnlockBatchMqRequestHeader": "",
    "UnregisterClientResponseHeader": "",
    "UpdateConsumerOffsetResponseHeader": "",
    # classes that no request of 5.3.3 carries
    "EndTransactionResponseHeader": "",
    "InitConsumerOffsetRequestHeader": "String topic, int initMode",
    "RegisterOrderTopicRequestHeader": "String topic!, String orderTopicString!",
    "StatisticsMessagesRequestHeader": (
        "String consumerGroup!, String topic!, Integer queueId!, long fromTime, long toTime"
    ),
    "ViewMessageResponseHeader": "",
}
"""The fields of each class, besides those of its base."""

_BASES: dict[str, HeaderClass] = {
    "HeartbeatRequestHeader": RpcRequestHeader,
    "InitConsumerOffsetRequestHeader": TopicRequestHeader,
    "LockBatchMqRequestHeader": RpcRequestHeader,
    "StatisticsMessagesRequestHeader": TopicQueueRequestHeader,
    "UnlockBatchMqRequestHeader": RpcRequestHeader,
}
"""The bases of the classes that have one."""


def __getattr__(name: str) -> HeaderClass:
    """Return the class of a row, made at its first use."""
    if name not in ROWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _class(name)


@functools.cache
def _class(name: str) -> HeaderClass:
    fields = dict(map(_field, filter(None, ROWS[name].split(", "))))
    base = _BASES.get(name)
    bases = () if base is None else (base,)
    return attrs.make_class(name, fields, bases, frozen=True, kw_only=True, slots=True, order=False)


def _field(declaration: str) -> tuple[str, Any]:
    """Return an attribute's name, and the attribute: `Long brokerId` becomes broker_id, which is None if it is absent."""
    java, wire = declaration.rstrip("!").split()
    declare, kind, absent = _TYPES[java]
    attribute = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in wire)
    if declaration.endswith("!"):
        return attribute, attrs.field(metadata=declare(wire), type=kind)
    optional: Any = kind | None if absent is None else kind
    return attribute, attrs.field(default=absent, metadata=declare(wire), type=optional)
