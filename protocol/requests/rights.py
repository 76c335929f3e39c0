"""The rights that each request to a broker or name server needs: which rights on which topics and groups, or on the cluster.

After Apache's DefaultAuthorizationContextBuilder and its headers' @RocketMQAction. Stricter in one point: what names no
topic and no group needs its right on the cluster, where 5.3.3 lets every user do what it has no annotation for (change a
broker's settings, create groups, pull by LITE_PULL_MESSAGE).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator

import attrs

from twisted_mq.protocol import bodies
from twisted_mq.protocol.bodies import decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC, REPLY_TOPIC_SUFFIX
from twisted_mq.protocol.wire.command import RemotingCommand


class Action(enum.StrEnum):
    """Apache: Action, by the names that policies have."""

    ALL = "All"
    ANY = "Any"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


Names = Callable[[RemotingCommand], Iterable[str]]


@attrs.frozen
class One:
    """The value of a field that is not blank; a value that is `left_out` is none."""

    field: str
    left_out: str = ""

    def __call__(self, command: RemotingCommand) -> Iterable[str]:
        text = command.ext_fields.get(self.field)
        return (text,) if text and text != self.left_out and not text.isspace() else ()


def _none(command: RemotingCommand) -> Iterable[str]:
    return ()


@attrs.frozen
class Rights:
    """A rule: one of `actions` is needed on each topic and group that the request names; on the cluster where it names none.

    `for_all`: what names none is for every user. `reads_body`: the names are in the body, which may be long and wrong.
    """

    actions: tuple[Action, ...] = ()
    topics: Names = _none
    groups: Names = _none
    for_all: bool = False
    reads_body: bool = False

    @property
    def fields(self) -> tuple[str, str] | None:
        """Return the fields that name topic and group, "" for none; None if a request names them otherwise."""
        named = [names.field if isinstance(names, One) else "" for names in (self.topics, self.groups)]
        is_plain = all(names is _none or isinstance(names, One) for names in (self.topics, self.groups))
        return (named[0], named[1]) if is_plain else None


def field(*names: str, parted_by: str | None = None) -> Names:
    """Return the fields that are not blank."""

    def named(command: RemotingCommand) -> Iterator[str]:
        fields = command.ext_fields
        for name in names:
            text = fields.get(name, "")
            yield from (part for part in (text.split(parted_by) if parted_by else (text,)) if part.strip())

    return named


def _but_replies(topic: Names) -> Names:
    """Return the topics without those of replies, on which no rights are given: every client may reply to a request."""
    return lambda command: (name for name in topic(command) if not name.endswith(REPLY_TOPIC_SUFFIX))


def _heartbeat_topics(command: RemotingCommand) -> Iterator[str]:
    for group in decode_body(bodies.HeartbeatData, command.body).consumer_data_set:
        yield from (subscription.topic for subscription in group.subscription_data_set)


def _heartbeat_groups(command: RemotingCommand) -> Iterable[str]:
    return (group.group_name for group in decode_body(bodies.HeartbeatData, command.body).consumer_data_set)


def _locked_topics(command: RemotingCommand) -> Iterable[str]:
    return (queue.topic for queue in decode_body(bodies.LockBatchRequestBody, command.body).mq_set)


def _locking_group(command: RemotingCommand) -> Iterable[str]:
    return (decode_body(bodies.LockBatchRequestBody, command.body).consumer_group,)


def _checked_topic(command: RemotingCommand) -> Iterable[str]:
    subscription = decode_body(bodies.CheckClientRequestBody, command.body).subscription_data
    return () if subscription is None else (subscription.topic,)


def _checked_group(command: RemotingCommand) -> Iterable[str]:
    return (decode_body(bodies.CheckClientRequestBody, command.body).group,)


def _assigned_topic(command: RemotingCommand) -> Iterable[str]:
    return _given(decode_body(bodies.QueryAssignmentRequestBody, command.body).topic)


def _assigned_group(command: RemotingCommand) -> Iterable[str]:
    return _given(decode_body(bodies.QueryAssignmentRequestBody, command.body).consumer_group)


def _acknowledged_topics(command: RemotingCommand) -> Iterable[str]:
    return _given(*(ack.topic for ack in decode_body(bodies.BatchAckMessageRequestBody, command.body).acks))


def _acknowledging_groups(command: RemotingCommand) -> Iterable[str]:
    return _given(*(ack.consumer_group for ack in decode_body(bodies.BatchAckMessageRequestBody, command.body).acks))


def _listed_topics(command: RemotingCommand) -> Iterable[str]:
    return (one.topic_name for one in decode_body(bodies.CreateTopicListRequestBody, command.body).topic_config_list)


def _configured_group(command: RemotingCommand) -> Iterable[str]:
    return (decode_body(bodies.SubscriptionGroupConfig, command.body).group_name,)


def _listed_groups(command: RemotingCommand) -> Iterable[str]:
    return (one.group_name for one in decode_body(bodies.SubscriptionGroupList, command.body).group_config_list)


def _given(*names: str | None) -> list[str]:
    return [name for name in names if name]


PUB, SUB = Action.PUB, Action.SUB
CREATE, UPDATE, DELETE, GET, LIST = Action.CREATE, Action.UPDATE, Action.DELETE, Action.GET, Action.LIST

_TOPIC, _GROUP, _CONSUMER_GROUP = One("topic"), One("group"), One("consumerGroup")
_V2_TOPIC = One("b")
_ROUTED_TOPIC = One("topic", left_out=AUTO_CREATE_TOPIC)
"""Every producer asks for the route of the default topic."""

_CLUSTER_GET, _CLUSTER_UPDATE = Rights((GET,)), Rights((UPDATE,))
_CONSUME = Rights((SUB,), _TOPIC, _CONSUMER_GROUP)
_GET_TOPIC = Rights((GET,), _TOPIC)
_ASSIGNED = Rights((SUB,), _assigned_topic, _assigned_group, reads_body=True)
_LOCKED = Rights((SUB,), _locked_topics, _locking_group, reads_body=True)

CLIENTS: dict[RequestCode, Rights] = {
    RequestCode.SEND_MESSAGE: Rights((PUB,), _TOPIC),
    RequestCode.SEND_MESSAGE_V2: Rights((PUB,), _V2_TOPIC),
    RequestCode.SEND_BATCH_MESSAGE: Rights((PUB,), _V2_TOPIC),
    RequestCode.RECALL_MESSAGE: Rights((PUB,), _TOPIC),
    # 4.x clients name no topic here
    RequestCode.END_TRANSACTION: Rights((PUB,), _TOPIC, for_all=True),
    RequestCode.SEND_REPLY_MESSAGE: Rights((PUB,), _but_replies(_TOPIC), for_all=True),
    RequestCode.SEND_REPLY_MESSAGE_V2: Rights((PUB,), _but_replies(_V2_TOPIC), for_all=True),
    RequestCode.CONSUMER_SEND_MSG_BACK: Rights((SUB,), groups=_GROUP),
    RequestCode.PULL_MESSAGE: _CONSUME,
    RequestCode.LITE_PULL_MESSAGE: _CONSUME,
    RequestCode.HEART_BEAT: Rights((SUB,), _heartbeat_topics, _heartbeat_groups, for_all=True, reads_body=True),
    RequestCode.UNREGISTER_CLIENT: Rights((SUB,), groups=_CONSUMER_GROUP, for_all=True),
    RequestCode.CHECK_CLIENT_CONFIG: Rights((SUB,), _checked_topic, _checked_group, reads_body=True),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: Rights((SUB, GET), groups=_CONSUMER_GROUP),
    RequestCode.QUERY_CONSUMER_OFFSET: Rights((SUB, GET), _TOPIC, _CONSUMER_GROUP),
    RequestCode.UPDATE_CONSUMER_OFFSET: Rights((SUB, UPDATE), _TOPIC, _CONSUMER_GROUP),
    RequestCode.LOCK_BATCH_MQ: _LOCKED,
    RequestCode.UNLOCK_BATCH_MQ: _LOCKED,
    RequestCode.QUERY_MESSAGE: Rights((SUB, GET), _TOPIC),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _GET_TOPIC,
    RequestCode.GET_MAX_OFFSET: _GET_TOPIC,
    RequestCode.GET_MIN_OFFSET: _GET_TOPIC,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _GET_TOPIC,
    RequestCode.VIEW_MESSAGE_BY_ID: _GET_TOPIC,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: Rights((PUB, SUB, GET), _ROUTED_TOPIC, for_all=True),
    RequestCode.POP_MESSAGE: _CONSUME,
    RequestCode.ACK_MESSAGE: _CONSUME,
    RequestCode.PEEK_MESSAGE: _CONSUME,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _CONSUME,
    RequestCode.NOTIFICATION: _CONSUME,
    RequestCode.BATCH_ACK_MESSAGE: Rights((SUB,), _acknowledged_topics, _acknowledging_groups, reads_body=True),
    RequestCode.QUERY_ASSIGNMENT: _ASSIGNED,
    RequestCode.POLLING_INFO: Rights((GET,), _TOPIC, _CONSUMER_GROUP),
    RequestCode.POP_ROLLBACK: _CLUSTER_UPDATE,
}

ADMINISTRATION: dict[RequestCode, Rights] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: Rights((CREATE,), _TOPIC),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Rights((CREATE,), _listed_topics, reads_body=True),
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: Rights((CREATE,), _TOPIC),
    RequestCode.DELETE_TOPIC_IN_BROKER: Rights((DELETE,), _TOPIC),
    RequestCode.GET_TOPIC_CONFIG: _GET_TOPIC,
    RequestCode.GET_TOPIC_STATS_INFO: _GET_TOPIC,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: _GET_TOPIC,
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _GET_TOPIC,
    RequestCode.RESUME_CHECK_HALF_MESSAGE: Rights((UPDATE,), _TOPIC),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Rights((UPDATE,), groups=_configured_group, reads_body=True),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Rights((UPDATE,), groups=_listed_groups, reads_body=True),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: Rights((DELETE,), groups=One("groupName")),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Rights((GET,), groups=_GROUP),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: Rights((GET,), groups=_CONSUMER_GROUP),
    RequestCode.GET_CONSUMER_RUNNING_INFO: Rights((GET,), groups=_CONSUMER_GROUP),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _CONSUME,
    RequestCode.GET_CONSUME_STATS: Rights(
        (GET,), lambda command: [*_TOPIC(command), *field("topicList", parted_by=";")(command)], _CONSUMER_GROUP
    ),
    RequestCode.QUERY_CONSUME_QUEUE: Rights((GET,), _TOPIC, _CONSUMER_GROUP),
    RequestCode.QUERY_CONSUME_TIME_SPAN: Rights((GET,), _TOPIC, _GROUP),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: Rights((GET,), groups=_GROUP),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: Rights((GET,), _TOPIC, _GROUP),
    RequestCode.QUERY_CORRECTION_OFFSET: Rights(
        (GET,),
        _TOPIC,
        lambda command: [*field("filterGroups", parted_by=",")(command), *One("compareGroup")(command)],
    ),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Rights((GET,), _TOPIC, _GROUP),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: Rights((UPDATE,), _TOPIC, _GROUP),
    RequestCode.CLONE_GROUP_OFFSET: Rights((UPDATE,), _TOPIC, field("srcGroup", "destGroup")),
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: Rights((UPDATE,), _TOPIC, _GROUP),
    RequestCode.SET_MESSAGE_REQUEST_MODE: Rights((UPDATE,), _assigned_topic, _assigned_group, reads_body=True),
    **dict.fromkeys(
        (
            RequestCode.GET_ALL_TOPIC_CONFIG,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            RequestCode.GET_BROKER_CONFIG,
            RequestCode.GET_BROKER_RUNTIME_INFO,
            RequestCode.GET_PRODUCER_CONNECTION_LIST,
            RequestCode.GET_ALL_PRODUCER_INFO,
            RequestCode.GET_BROKER_CONSUME_STATS,
            RequestCode.VIEW_BROKER_STATS_DATA,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
            RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON,
            RequestCode.GET_COLD_DATA_FLOW_CTR_INFO,
            RequestCode.AUTH_GET_USER,
            RequestCode.AUTH_LIST_USER,
            RequestCode.AUTH_GET_ACL,
            RequestCode.AUTH_LIST_ACL,
        ),
        _CLUSTER_GET,
    ),
    **dict.fromkeys(
        (
            RequestCode.UPDATE_BROKER_CONFIG,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
            RequestCode.CLEAN_UNUSED_TOPIC,
            RequestCode.DELETE_EXPIRED_COMMITLOG,
            RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
            RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
            RequestCode.SET_COMMITLOG_READ_MODE,
            RequestCode.AUTH_CREATE_USER,
            RequestCode.AUTH_UPDATE_USER,
            RequestCode.AUTH_DELETE_USER,
            RequestCode.AUTH_CREATE_ACL,
            RequestCode.AUTH_UPDATE_ACL,
            RequestCode.AUTH_DELETE_ACL,
        ),
        _CLUSTER_UPDATE,
    ),
}

SERVERS: dict[RequestCode, Rights] = {
    **dict.fromkeys(
        (
            RequestCode.GET_ALL_CONSUMER_OFFSET,
            RequestCode.GET_ALL_DELAY_OFFSET,
            RequestCode.GET_TIMER_CHECK_POINT,
            RequestCode.GET_TIMER_METRICS,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
            RequestCode.GET_BROKER_HA_STATUS,
            RequestCode.GET_BROKER_EPOCH_CACHE,
            RequestCode.GET_BROKER_MEMBER_GROUP,
            RequestCode.QUERY_DATA_VERSION,
            RequestCode.GET_BROKER_CLUSTER_INFO,
            RequestCode.GET_KV_CONFIG,
            RequestCode.GET_KVLIST_BY_NAMESPACE,
            RequestCode.GET_NAMESRV_CONFIG,
        ),
        _CLUSTER_GET,
    ),
    **dict.fromkeys(
        (
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            RequestCode.GET_TOPICS_BY_CLUSTER,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
            RequestCode.GET_UNIT_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        ),
        Rights((LIST,)),
    ),
    **dict.fromkeys(
        (
            RequestCode.REGISTER_BROKER,
            RequestCode.UNREGISTER_BROKER,
            RequestCode.BROKER_HEARTBEAT,
            RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE,
            RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
            RequestCode.EXCHANGE_BROKER_HA_INFO,
            RequestCode.RESET_MASTER_FLUSH_OFFSET,
            RequestCode.PUT_KV_CONFIG,
            RequestCode.DELETE_KV_CONFIG,
            RequestCode.UPDATE_NAMESRV_CONFIG,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
            RequestCode.DELETE_TOPIC_IN_NAMESRV,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER,
            RequestCode.ADD_WRITE_PERM_OF_BROKER,
        ),
        _CLUSTER_UPDATE,
    ),
}

RIGHTS: dict[RequestCode, Rights] = CLIENTS | ADMINISTRATION | SERVERS

BY_CODE: dict[int, Rights] = {int(code): rights for code, rights in RIGHTS.items()}
"""As frames have the codes."""
