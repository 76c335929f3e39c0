"""Short ways to speak to a route table in tests."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from twisted_mq.namesrv.by_topic import run_all_slices
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.namesrv.route_values import BrokerAddress, BrokerRegistration, Registered
from twisted_mq.protocol.bodies import BrokerData, DataVersion, QueueData, TopicConfig

T, U = "T", "U"


def topics(*names: str, perm: int = 6, queues: int = 4, sys_flag: int = 0) -> dict[str, TopicConfig]:
    return {
        name: TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, topic_sys_flag=sys_flag
        )
        for name in names
    }


def version(counter: int = 1, state: int = 0) -> DataVersion:
    return DataVersion(state_version=state, timestamp=1000, counter=counter)


def registration(broker: str = "b1", broker_id: int = 0, **changes: Any) -> BrokerRegistration:
    given: dict[str, Any] = {
        "cluster_name": "C",
        "broker_name": broker,
        "broker_id": broker_id,
        "address": address(broker, broker_id),
        "ha_server_address": ha_address(broker, broker_id),
        "connection": connection(broker, broker_id),
        "topics": topics(T, U),
        "data_version": version(),
        "enable_acting_master": False,
    }
    return BrokerRegistration(**{**given, **changes})


def register(table: RouteTable, *arguments: Any, now_ms: int = 0, delete: bool = False, **changes: Any) -> Registered:
    return run_all_slices(table.register(registration(*arguments, **changes), now_ms, delete_missing_topics=delete))


def address(broker: str, broker_id: int = 0) -> str:
    return f"{broker}-{broker_id}:10911"


def ha_address(broker: str, broker_id: int = 0) -> str:
    return f"{broker}-{broker_id}:10912"


@attrs.define(eq=False)
class Link:
    """A broker's connection."""

    connected_now: bool = True
    share_address: str = "127.0.0.1"

    def close(self) -> None:
        self.connected_now = False


def connection(broker: str, broker_id: int = 0) -> Link:
    """The same for the same broker."""
    return _link(broker, broker_id)


@functools.cache
def _link(broker: str, broker_id: int) -> Link:
    return Link(share_address=f"{broker}-{broker_id}")


def key(broker: str, broker_id: int = 0) -> BrokerAddress:
    return BrokerAddress("C", address(broker, broker_id))


def queue(broker: str, perm: int = 6, queues: int = 4, sys_flag: int = 0) -> QueueData:
    return QueueData(broker, queues, queues, perm, sys_flag)


def broker_data(broker: str, *ids: int, acting: bool = False, zone: str | None = None) -> BrokerData:
    return BrokerData("C", broker, {one: address(broker, one) for one in ids}, zone, acting)
