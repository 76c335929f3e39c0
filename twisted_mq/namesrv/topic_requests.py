"""Serves the topic requests of clients and admins (Apache: ClientRequestProcessor, DefaultRequestProcessor)."""

from __future__ import annotations

from collections.abc import Callable

from twisted_mq.namesrv import route_query
from twisted_mq.namesrv.broker_requests import ZONE_NAME
from twisted_mq.namesrv.route_query import Names
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.namesrv.state import NamesrvState, RequestFunction, answer, check_size, refuse
from twisted_mq.protocol.bodies import TopicList, TopicRouteData, decode_body, encode_body
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import (
    DeleteTopicFromNamesrvRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
    RegisterTopicRequestHeader,
)
from twisted_mq.protocol.names.routes import ORDER_TOPIC_CONFIG
from twisted_mq.protocol.remarks import FAQ
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import then

V4_9_4 = 401
"""MQVersion ordinal from which clients get standard JSON: integer keys quoted."""

ZONE_MODE = "__ZONE_MODE"
"""Header field that no header class declares (Apache: MixAll.ZONE_MODE)."""

MAX_ROUTE_BYTES = 32 * 1024
"""The limit of the body: a broker registers a topic with its own queues only."""

NO_ROUTE = "No topic route info in name server for the topic: {topic}" + FAQ


def route_info(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_ROUTEINFO_BY_TOPIC. A request without any field is answered as one for the topic null, as in Apache."""
    _check_ready(state)
    if not command.ext_fields:
        raise refuse(NO_ROUTE.format(topic="null"), ResponseCode.TOPIC_NOT_EXIST)
    header = decode_header(GetRouteInfoRequestHeader, command)
    route = _route(state, header.topic)
    if route is None:
        raise refuse(NO_ROUTE.format(topic=header.topic), ResponseCode.TOPIC_NOT_EXIST)
    zone_name = command.ext_fields.get(ZONE_NAME, "").strip()
    if zone_name and command.ext_fields.get(ZONE_MODE, "").lower() == "true":
        route = route_query.in_zone(route, zone_name)
    standard = command.version >= V4_9_4 or bool(header.accept_standard_json_only)
    return answer(command, body=encode_body(route, standard=standard))


def _check_ready(state: NamesrvState) -> None:
    options = state.options
    waited = state.clock.seconds() - state.started_at
    if options.need_wait_for_service and waited < options.wait_seconds_for_service:
        raise refuse("name server not ready")


def _route(state: NamesrvState, topic: str) -> TopicRouteData | None:
    order = state.kv_config.get(ORDER_TOPIC_CONFIG, topic) if state.options.order_message_enable else None
    return route_query.topic_route(
        state.routes, topic, order_topic_conf=order, acting_master=state.options.support_acting_master
    )


def register_topic(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve REGISTER_TOPIC_IN_NAMESRV. Queues of unknown brokers are skipped with a log line, as in Apache."""
    header = decode_header(RegisterTopicRequestHeader, command)
    body = check_size(command, MAX_ROUTE_BYTES)
    route = decode_body(TopicRouteData, body) if body else None
    if route is not None and route.queue_datas:
        state.routes.register_topic(header.topic, route.queue_datas)
    return answer(command)


def delete_topic(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve DELETE_TOPIC_IN_NAMESRV."""
    header = decode_header(DeleteTopicFromNamesrvRequestHeader, command)
    state.routes.delete_topic(header.topic, header.cluster_name)
    return answer(command)


def all_topics(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve GET_ALL_TOPIC_LIST_FROM_NAMESERVER."""
    if not state.options.enable_all_topic_list:
        raise refuse("disable")
    return _listed(state, command, "all", route_query.all_topics)


def topics_by_cluster(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve GET_TOPICS_BY_CLUSTER."""
    _check_topic_list(state)
    cluster = decode_header(GetTopicsByClusterRequestHeader, command).cluster
    if cluster not in state.routes.clusters:
        return answer(command, body=encode_body(TopicList()))
    return _listed(state, command, f"cluster {cluster}", lambda table: route_query.topics_of_cluster(table, cluster))


def system_topics(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_SYSTEM_TOPIC_LIST_FROM_NS."""
    return answer(command, body=encode_body(route_query.system_topics(state.routes)))


def topic_list(name: str, names: Callable[[RouteTable], Names]) -> RequestFunction:
    """Return a request function for one of the lists that enableTopicList switches on."""

    def listed(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
        _check_topic_list(state)
        return _listed(state, command, name, names)

    return listed


def _listed(state: NamesrvState, command: RemotingCommand, name: str, names: Callable[[RouteTable], Names]) -> Answer:
    return then(state.lists.body(name, names), lambda body: answer(command, body=body))


def _check_topic_list(state: NamesrvState) -> None:
    if not state.options.enable_topic_list:
        raise refuse("disable")
