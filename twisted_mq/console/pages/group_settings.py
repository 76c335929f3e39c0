"""Creates, configures and deletes consumer groups, at all masters."""

from __future__ import annotations

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.concurrently import concurrently
from twisted_mq.admin.group_settings import all_masters, delete_group, group_configs, put_group
from twisted_mq.console.answers import Answer, BadInput, Redirect
from twisted_mq.console.forms import link, said
from twisted_mq.console.visit import Visit
from twisted_mq.protocol.bodies import SubscriptionGroupConfig
from twisted_mq.protocol.errors import ProtocolError
from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS
from twisted_mq.protocol.names.validation import group_fault
from twisted_mq.remoting.errors import RemotingError

MOST_RETRIES = 1000
MOST_QUEUES = 1024


@attrs.frozen
class GroupAtBroker:
    """A group at one broker; if the broker cannot report it, `config` is None and `problem` says why."""

    broker_name: str
    config: SubscriptionGroupConfig | None = None
    problem: str | None = None


async def at_brokers(admin: AdminCalls, group: str) -> list[GroupAtBroker]:
    """Return the group at each master."""

    async def at(broker: tuple[str, str]) -> GroupAtBroker:
        try:
            config = (await group_configs(admin, broker[1])).get(group)
            return GroupAtBroker(broker[0], config, None if config else "The broker does not have this group.")
        except (ProtocolError, RemotingError) as error:
            return GroupAtBroker(broker[0], problem=said(error))

    return await concurrently(at, (await all_masters(admin)).items())


def _given(visit: Visit, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
    """Return the settings with the values of a form. Raises BadInput."""
    return attrs.evolve(
        config,
        retry_max_times=visit.number("retry_max_times", "Attempts", 16, 0, MOST_RETRIES),
        retry_queue_nums=visit.number("retry_queues", "Retry queues", 1, 0, MOST_QUEUES),
        consume_timeout_minute=visit.number("timeout_minutes", "The time limit", 15, 1, 1 << 20),
        consume_enable="consume" in visit.fields,
        consume_message_orderly="order" in visit.fields,
        consume_broadcast_enable="broadcast" in visit.fields,
    )


async def _masters(visit: Visit) -> dict[str, str]:
    masters = await all_masters(visit.admin)
    if not masters:
        raise BadInput("No master is running to create the group.")
    return masters


async def create(visit: Visit) -> Answer:
    """Create a group at all masters."""
    name = visit.needed("name", "The group's name")
    fault = group_fault(name)
    if fault:
        raise BadInput(fault)
    known = [one.broker_name for one in await at_brokers(visit.admin, name) if one.config is not None]
    if known:
        raise BadInput(f"Group {name} already exists, at {', '.join(known)}: change it on its page.")
    config = _given(visit, SubscriptionGroupConfig(group_name=name))
    masters = await _masters(visit)
    for address in masters.values():
        await put_group(visit.admin, address, config)
    visit.tell(f"Group {name} is created at {len(masters)} brokers.")
    return Redirect(link("/group", name=name))


async def configure(visit: Visit) -> Answer:
    """Change settings of a group, at all masters; settings that no form shows stay as each broker has them."""
    name = visit.needed("name", "The group's name")
    masters = await _masters(visit)
    for one in await at_brokers(visit.admin, name):
        config = _given(visit, one.config or SubscriptionGroupConfig(group_name=name))
        await put_group(visit.admin, masters[one.broker_name], config)
    visit.tell(f"Group {name} is configured at {len(masters)} brokers.")
    return Redirect(link("/group", name=name))


async def delete(visit: Visit) -> Answer:
    """Delete a group with its retries and dead letters; the user has to type its name."""
    admin, name = visit.admin, visit.needed("name", "The group's name")
    if visit.text("typed") != name:
        raise BadInput(f"Type the name {name} to delete it.")
    if name in BROKERS_GROUPS:
        raise BadInput("System groups cannot be deleted.")
    clusters = sorted((await admin.cluster_info()).cluster_addr_table or {})
    await delete_group(admin, name, await _masters(visit), clusters, offsets="offsets" in visit.fields)
    visit.tell(f"Group {name} is deleted.")
    return Redirect("/groups")
