"""Serves brokers: registration, signs of life, departure (Apache: DefaultRequestProcessor)."""

from __future__ import annotations

import zlib

from twisted_mq.namesrv import route_query
from twisted_mq.namesrv.route_values import BrokerAddress, BrokerRegistration
from twisted_mq.namesrv.state import NamesrvState, answer, check_size, refuse
from twisted_mq.protocol.bodies import (
    DataVersion,
    GetBrokerMemberGroupResponseBody,
    KVTable,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.bodies.register_broker_reader import (
    RegisteredTopics,
    is_longer_inflated,
    read_old_registration,
    read_register_broker,
)
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    BrokerHeartbeatRequestHeader,
    GetBrokerMemberGroupRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from twisted_mq.protocol.names.routes import ORDER_TOPIC_CONFIG
from twisted_mq.protocol.requests.registration_proof import PROOF, is_proven
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Work, then

V3_0_11 = 37
"""MQVersion ordinal from which a registration's body is a RegisterBrokerBody; before, it has only the topics."""

ZONE_NAME = "__ZONE_NAME"
"""Header field that no header class declares (Apache: MixAll.ZONE_NAME)."""

LARGE_BODY = 4096
SMALL_INFLATED = 64 * 1024
"""A compressed body of 4 KiB may hold 4 MiB. Small is only what is small after decompression too."""
MAX_VERSION_BYTES = 4096

NOT_SET = "not set any response code"
"""Remark of Apache's answers whose code was never set; clients see it with code 0."""


def register_broker(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve REGISTER_BROKER."""
    _check_proof(state, command)
    header = decode_header(RegisterBrokerRequestHeader, command)
    if header.body_crc32 and header.body_crc32 != zlib.crc32(command.body) & 0x7FFFFFFF:
        raise refuse("crc32 not match")
    work = _registered(state, channel, command, header)
    if len(command.body) > LARGE_BODY or (header.compressed and is_longer_inflated(command.body, SMALL_INFLATED)):
        work = state.registrations.keep(len(command.body), work)
    return then(state.turns.run(header.broker_name, work), lambda result: answer(command, result, _order_topics(state)))


def _registered(
    state: NamesrvState, channel: Channel, command: RemotingCommand, header: RegisterBrokerRequestHeader
) -> Work[RegisterBrokerResponseHeader]:
    body = yield from _read(header, command)
    registration = _registration(header, command, channel, body)
    delete = state.options.delete_topic_with_broker_registration
    registered = yield from state.routes.register(registration, state.now_ms(), delete_missing_topics=delete)
    if not registered.accepted:
        raise refuse("register broker failed")
    state.tell_if_wanted(registered.change)
    return RegisterBrokerResponseHeader(
        ha_server_addr=registered.ha_server_address, master_addr=registered.master_address
    )


def _registration(
    header: RegisterBrokerRequestHeader, command: RemotingCommand, channel: Channel, body: RegisteredTopics
) -> BrokerRegistration:
    return BrokerRegistration(
        cluster_name=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_server_address=header.ha_server_addr,
        connection=channel,
        topics=body.topics,
        data_version=body.data_version,
        topic_mappings=body.static_topics,
        filter_servers=body.filter_servers,
        zone_name=command.ext_fields.get(ZONE_NAME),
        timeout_ms=header.heartbeat_timeout_millis,
        enable_acting_master=header.enable_acting_master,
    )


def _read(header: RegisterBrokerRequestHeader, command: RemotingCommand) -> Work[RegisteredTopics]:
    """Parse the body's three forms. Without a body: no topics, version 0."""
    if not command.body:
        return RegisteredTopics()
    if command.version >= V3_0_11:
        return (yield from read_register_broker(command.body, header.compressed, command.version))
    return (yield from read_old_registration(command.body))


def _check_proof(state: NamesrvState, command: RemotingCommand) -> None:
    secret = state.options.registration_shared_secret
    if secret is not None and not is_proven(command, secret):
        given = "it differs" if PROOF in command.ext_fields else "it is missing"
        raise refuse(f"{PROOF}: registrationSharedSecret is required here, {given}", ResponseCode.NO_PERMISSION)


def _order_topics(state: NamesrvState) -> bytes:
    keys = state.kv_config.namespace(ORDER_TOPIC_CONFIG) if state.options.return_order_topic_config_to_broker else None
    return b"" if keys is None else encode_body(KVTable(table=keys))


def unregister_broker(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve UNREGISTER_BROKER."""
    _check_proof(state, command)
    header = decode_header(UnRegisterBrokerRequestHeader, command)
    key = BrokerAddress(header.cluster_name, header.broker_addr)
    state.routes.check_leave(key, header.broker_name, channel, state.now_ms())
    state.tell_if_wanted(state.routes.unregister(key, header.broker_name, header.broker_id))
    return answer(command)


def query_data_version(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve QUERY_DATA_VERSION: whether the broker must register again. It counts as a sign of life."""
    header = decode_header(QueryDataVersionRequestHeader, command)
    key = BrokerAddress(header.cluster_name, header.broker_addr)
    body = check_size(command, MAX_VERSION_BYTES)
    asked = decode_body(DataVersion, body) if body else None
    changed = state.routes.is_changed(key, asked)
    state.routes.heard_from(key, state.now_ms())
    known = state.routes.data_version(key)
    body = b"" if known is None else encode_body(known)
    return answer(command, QueryDataVersionResponseHeader(changed=changed), body)


def broker_heartbeat(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve BROKER_HEARTBEAT."""
    header = decode_header(BrokerHeartbeatRequestHeader, command)
    state.routes.heard_from(BrokerAddress(header.cluster_name, header.broker_addr), state.now_ms())
    return answer(command)


def broker_member_group(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_BROKER_MEMBER_GROUP."""
    header = decode_header(GetBrokerMemberGroupRequestHeader, command)
    group = route_query.broker_member_group(state.routes, header.cluster_name, header.broker_name)
    body = encode_body(GetBrokerMemberGroupResponseBody(broker_member_group=group))
    return answer(command, body=body, remark=NOT_SET)


def broker_cluster_info(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_BROKER_CLUSTER_INFO."""
    return answer(command, body=encode_body(route_query.cluster_info(state.routes)))


def wipe_write_permission(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve WIPE_WRITE_PERM_OF_BROKER."""
    header = decode_header(WipeWritePermOfBrokerRequestHeader, command)
    work = state.routes.set_writable(header.broker_name, False)
    return then(
        state.turns.run(header.broker_name, work),
        lambda count: answer(command, WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count)),
    )


def add_write_permission(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve ADD_WRITE_PERM_OF_BROKER."""
    header = decode_header(AddWritePermOfBrokerRequestHeader, command)
    work = state.routes.set_writable(header.broker_name, True)
    return then(
        state.turns.run(header.broker_name, work),
        lambda count: answer(command, AddWritePermOfBrokerResponseHeader(add_topic_count=count)),
    )
