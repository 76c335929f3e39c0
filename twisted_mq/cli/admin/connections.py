"""Implements `mqadmin consumerConnection`, `producerConnection`, `producer`: the connected clients."""

from __future__ import annotations

from twisted_mq.admin import groups
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine
from twisted_mq.cli.admin.java_format import hash_order, text_or_null
from twisted_mq.cli.admin.tables import TextTable
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import ProducerConnection, ProducerInfo, ProducerTableInfo
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetAllProducerInfoRequestHeader, GetProducerConnectionListRequestHeader
from twisted_mq.protocol.names.versions import version_name

CLIENTS = TextTable.of(
    "{:<36} {:<22} {:<10} {}",
    clientId="#ClientId",
    clientAddr="#ClientAddr",
    language="#Language",
    version="#Version",
)
SUBSCRIPTIONS = TextTable.of("{:<20} {}", topic="#Topic", subExpression="#SubExpression")


async def consumer_connection(admin: AdminContext, line: CommandLine) -> None:
    found = await groups.consumer_connection(admin, line.value("g"), line.value("b") or None)
    admin.say(CLIENTS.head)
    for one in found.connection_set:
        admin.row(CLIENTS, one.client_id, one.client_addr, one.language, version_name(one.version))
    admin.say("\nBelow is subscription:")
    admin.say(SUBSCRIPTIONS.head)
    for name in hash_order(found.subscription_table):
        subscription = found.subscription_table[name]
        admin.row(SUBSCRIPTIONS, subscription.topic, subscription.sub_string)
    admin.say("")
    admin.say(f"ConsumeType: {text_or_null(found.consume_type)}", consumeType=found.consume_type)
    admin.say(f"MessageModel: {text_or_null(found.message_model)}", messageModel=found.message_model)
    admin.say(f"ConsumeFromWhere: {text_or_null(found.consume_from_where)}", consumeFromWhere=found.consume_from_where)


async def producer_connection(admin: AdminContext, line: CommandLine) -> None:
    found = await _connection_of_producers(admin, line.value("g"), line.value("t"))
    for number, one in enumerate(found.connection_set, 1):
        version = version_name(one.version)
        admin.say(
            f"{number:04d}  {one.client_id:<32} {one.client_addr:<22} {one.language:<8} {version}",
            clientId=one.client_id,
            clientAddr=one.client_addr,
            language=one.language,
            version=version,
        )


async def _connection_of_producers(admin: AdminContext, group: str, topic: str) -> ProducerConnection:
    """Return a group's members from the first of the topic's brokers that knows any. Raises BrokerError, CliError."""
    failure: BrokerError | None = None
    for address in groups.addresses_of(await admin.topic_route(topic)):
        try:
            header = GetProducerConnectionListRequestHeader(producer_group=group)
            found = await admin.ask(address, ProducerConnection, RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
        except BrokerError as error:
            failure = error
            continue
        if found.connection_set:
            return found
    raise failure or CliError("Not found the producer group connection")


async def producer(admin: AdminContext, line: CommandLine) -> None:
    header = GetAllProducerInfoRequestHeader()
    found = await admin.ask(line.value("b"), ProducerTableInfo, RequestCode.GET_ALL_PRODUCER_INFO, header)
    for group in hash_order(found.data):
        for one in found.data[group]:
            admin.say(_producer_text(group, one), group=group, clientId=one.client_id, remoteIP=one.remote_ip,
                      language=one.language, version=one.version, lastUpdateTimestamp=one.last_update_timestamp)  # fmt: skip


def _producer_text(group: str, one: ProducerInfo) -> str:
    return (
        f"producer group ({group}) instance : clientId={one.client_id},remoteIP={one.remote_ip}, "
        f"language={one.language}, version={one.version}, lastUpdateTimestamp={one.last_update_timestamp}"
    )
