"""Rules of registration and departure that need no table."""

from __future__ import annotations

from twisted_mq.namesrv.route_values import MinBrokerIdChange, Registration
from twisted_mq.protocol.bodies import BrokerData, QueueData, TopicConfig
from twisted_mq.protocol.flags import PermName
from twisted_mq.protocol.names.routes import MASTER_ID


def addresses_without(held: BrokerData | None, registration: Registration) -> dict[int, str]:
    """The addresses of the broker's name, without its own under another id (a slave became master)."""
    if held is None:
        return {}
    return {
        one: address
        for one, address in held.broker_addrs.items()
        if address != registration.address or one == registration.broker_id
    }


def speaks_for_topics(registration: Registration, addresses: dict[int, str]) -> bool:
    """Whether its topics count: the master's, and the lowest slave's where brokers know acting masters."""
    if registration.broker_id == MASTER_ID:
        return True
    return registration.enable_acting_master is not None and registration.broker_id == min(addresses)


def queue_data(broker_name: str, config: TopicConfig, *, read_only: bool) -> QueueData:
    """The queues that a broker's configuration of a topic offers."""
    return QueueData(
        broker_name=broker_name,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm & ~PermName.PERM_WRITE if read_only else config.perm,
        topic_sys_flag=config.topic_sys_flag,
    )


def id_change(
    addresses: dict[int, str], *, offline_address: str | None = None, ha_address: str | None = None
) -> MinBrokerIdChange:
    """Whom to tell: all that are left of a departure, all but the new one of an arrival."""
    lowest = min(addresses)
    tell_all = offline_address is not None or len(addresses) == 1
    return MinBrokerIdChange(
        tell=tuple(address for one, address in addresses.items() if tell_all or one != lowest),
        min_broker_id=lowest,
        min_broker_address=addresses[lowest],
        offline_address=offline_address,
        ha_address=ha_address,
    )
