"""Decides about registration and departure where no table is needed."""

from __future__ import annotations

import functools

from twisted_mq.namesrv.route_values import BrokerRegistration, MinBrokerIdChange
from twisted_mq.protocol.bodies import BrokerData, QueueData, TopicConfig
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.routes import MASTER_ID

MAX_NAME = 255
"""The limit of characters of a broker's name, cluster, zone and addresses. Apache has no limit."""


def addresses_without(held: BrokerData | None, registration: BrokerRegistration) -> dict[int, str]:
    """Return the addresses of the broker's name, without its own under another id (a slave became master)."""
    if held is None:
        return {}
    return {
        one: address
        for one, address in held.broker_addrs.items()
        if address != registration.address or one == registration.broker_id
    }


def speaks_for_topics(registration: BrokerRegistration, addresses: dict[int, str]) -> bool:
    """Return True if its topics count: the master's, and the lowest slave's if brokers know acting masters."""
    if registration.broker_id == MASTER_ID:
        return True
    return registration.enable_acting_master is not None and MASTER_ID < registration.broker_id == min(addresses)


def queue_data(broker_name: str, config: TopicConfig, *, read_only: bool) -> QueueData:
    """Return the queues that a broker's configuration of a topic offers."""
    perm = config.perm & ~PermName.PERM_WRITE if read_only else config.perm
    return _queue_data(broker_name, config.read_queue_nums, config.write_queue_nums, perm, config.topic_sys_flag)


_queue_data = functools.lru_cache(maxsize=4096)(QueueData)
"""Cached, because nearly all topics of a broker have the same queues."""


def with_permission(queues: QueueData, perm: int) -> QueueData:
    """Return the same queues with another permission."""
    return _queue_data(queues.broker_name, queues.read_queue_nums, queues.write_queue_nums, perm, queues.topic_sys_flag)


def check_lengths(registration: BrokerRegistration) -> None:
    """Check the lengths of names and addresses. Raises BrokerError."""
    members = {
        "clusterName": registration.cluster_name,
        "brokerName": registration.broker_name,
        "brokerAddr": registration.address,
        "haServerAddr": registration.ha_server_address,
        "zoneName": registration.zone_name or "",
    }
    for member, value in members.items():
        if len(value) > MAX_NAME:
            remark = f"{member}={value[:60]}...: {len(value)} characters, the limit is {MAX_NAME}"
            raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)


def id_change(
    addresses: dict[int, str], *, offline_address: str | None = None, ha_address: str | None = None
) -> MinBrokerIdChange:
    """Return the brokers to notify: all that are left after a departure, all except the new one after an arrival."""
    lowest = min(addresses)
    tell_all = offline_address is not None or len(addresses) == 1
    return MinBrokerIdChange(
        tell=tuple(address for one, address in addresses.items() if tell_all or one != lowest),
        min_broker_id=lowest,
        min_broker_address=addresses[lowest],
        offline_address=offline_address,
        ha_address=ha_address,
    )
