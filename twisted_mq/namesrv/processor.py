"""Maps request codes to functions: everything that a 5.3.3 name server serves."""

from __future__ import annotations

import functools

from twisted_mq.namesrv import broker_requests, config_requests, route_query, topic_requests
from twisted_mq.namesrv.state import NamesrvState, RequestFunction
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.remoting.channel import Processor

REQUESTS: dict[RequestCode, RequestFunction] = {
    RequestCode.PUT_KV_CONFIG: config_requests.put_kv_config,
    RequestCode.GET_KV_CONFIG: config_requests.get_kv_config,
    RequestCode.DELETE_KV_CONFIG: config_requests.delete_kv_config,
    RequestCode.GET_KVLIST_BY_NAMESPACE: config_requests.kv_list_by_namespace,
    RequestCode.GET_NAMESRV_CONFIG: config_requests.get_config,
    RequestCode.UPDATE_NAMESRV_CONFIG: config_requests.update_config,
    RequestCode.REGISTER_BROKER: broker_requests.register_broker,
    RequestCode.UNREGISTER_BROKER: broker_requests.unregister_broker,
    RequestCode.QUERY_DATA_VERSION: broker_requests.query_data_version,
    RequestCode.BROKER_HEARTBEAT: broker_requests.broker_heartbeat,
    RequestCode.GET_BROKER_MEMBER_GROUP: broker_requests.broker_member_group,
    RequestCode.GET_BROKER_CLUSTER_INFO: broker_requests.broker_cluster_info,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: broker_requests.wipe_write_permission,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: broker_requests.add_write_permission,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: topic_requests.route_info,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: topic_requests.register_topic,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: topic_requests.delete_topic,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: topic_requests.all_topics,
    RequestCode.GET_TOPICS_BY_CLUSTER: topic_requests.topics_by_cluster,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: topic_requests.system_topics,
    RequestCode.GET_UNIT_TOPIC_LIST: topic_requests.topic_list("unit", route_query.unit_topics),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: topic_requests.topic_list("unit sub", route_query.unit_sub_topics),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: topic_requests.topic_list(
        "unit sub outside", route_query.unit_sub_topics_outside_units
    ),
}


def processors(state: NamesrvState) -> dict[int, Processor]:
    """Return the functions of `REQUESTS` for one name server, as a remoting server takes them."""
    return {int(code): functools.partial(function, state) for code, function in REQUESTS.items()}
