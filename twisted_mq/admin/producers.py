"""Requests for the producers that are connected to brokers."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.protocol.bodies import ProducerInfo, ProducerTableInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import GetAllProducerInfoRequestHeader


@attrs.frozen
class ConnectedProducer:
    """A member of a producer group, connected to one broker."""

    group: str
    broker_name: str
    info: ProducerInfo


async def producers_at(admin: AdminCalls, address: str) -> dict[str, list[ProducerInfo]]:
    """Return producer group -> its members at a broker."""
    header = GetAllProducerInfoRequestHeader()
    return (await admin.ask(address, ProducerTableInfo, RequestCode.GET_ALL_PRODUCER_INFO, header)).data


async def producers(admin: AdminCalls, masters: dict[str, str]) -> list[ConnectedProducer]:
    """Return the members of all producer groups, sorted by group, client and broker. Raises the first failure."""
    tables = await concurrently(lambda address: producers_at(admin, address), masters.values())
    found = [
        ConnectedProducer(group, name, info)
        for name, table in zip(masters, tables, strict=True)
        for group, members in table.items()
        for info in members
    ]
    return sorted(found, key=lambda one: (one.group, one.info.client_id, one.broker_name))
