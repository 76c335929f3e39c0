"""Serves the key-value configuration and the name server's own settings (Apache: DefaultRequestProcessor)."""

from __future__ import annotations

from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.options import options_text, parse_updates
from twisted_mq.config.properties import parse_request, update_properties
from twisted_mq.namesrv.kv_config import KVConfigFull
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.namesrv.state import NamesrvState, answer, check_size, refuse
from twisted_mq.protocol.bodies import KVTable, encode_body
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Work, outcome, then

MAX_SETTINGS_BYTES = 16 * 1024
"""The longest body with settings; all settings of a name server together have less than 2 KiB."""


def put_kv_config(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve PUT_KV_CONFIG. The answer leaves once the change is on disk."""
    header = decode_header(PutKVConfigRequestHeader, command)
    return _changed(state, command, header.namespace, header.key, header.value)


def _changed(state: NamesrvState, command: RemotingCommand, namespace: str, key: str, value: str | None) -> Answer:
    work = _change(state, namespace, key, value)
    return then(state.turns.run("key-value configuration", work), lambda _: answer(command))


def _change(state: NamesrvState, namespace: str, key: str, value: str | None) -> Work[None]:
    config = state.kv_config
    try:
        changed = config.changed(namespace, key, value)
        if changed is not None:
            yield from outcome(state.in_thread(config.write, changed))
            config.show(changed)
    except KVConfigFull as error:
        raise refuse(str(error)) from error
    except OSError as error:
        raise refuse(f"key-value configuration not written: {error}") from error


def get_kv_config(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_KV_CONFIG."""
    header = decode_header(GetKVConfigRequestHeader, command)
    value = state.kv_config.get(header.namespace, header.key)
    if value is None:
        raise refuse(f"No config item, Namespace: {header.namespace} Key: {header.key}", ResponseCode.QUERY_NOT_FOUND)
    return answer(command, GetKVConfigResponseHeader(value=value))


def delete_kv_config(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve DELETE_KV_CONFIG; deleting a missing key is a success too."""
    header = decode_header(DeleteKVConfigRequestHeader, command)
    return _changed(state, command, header.namespace, header.key, None)


def kv_list_by_namespace(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_KVLIST_BY_NAMESPACE."""
    header = decode_header(GetKVListByNamespaceRequestHeader, command)
    keys = state.kv_config.namespace(header.namespace)
    if keys is None:
        raise refuse(f"No config item, Namespace: {header.namespace}", ResponseCode.QUERY_NOT_FOUND)
    return answer(command, body=encode_body(KVTable(table=keys)))


def get_config(state: NamesrvState, channel: Channel, command: RemotingCommand) -> RemotingCommand:
    """Serve GET_NAMESRV_CONFIG: lines of key=value."""
    return answer(command, body=options_text(state.options).encode())


def update_config(state: NamesrvState, channel: Channel, command: RemotingCommand) -> Answer:
    """Serve UPDATE_NAMESRV_CONFIG: settings of the allow-list, all or none of a request.

    They are first written to configStorePath. Unlike Apache, refuse a key that may not be changed by its name, and a
    value of the wrong type.
    """
    return then(state.turns.run("settings", _update(state, command)), lambda _: answer(command))


def _update(state: NamesrvState, command: RemotingCommand) -> Work[None]:
    try:
        entries = parse_request(check_size(command, MAX_SETTINGS_BYTES))
        if state.options.refused_keys & {entry.key for entry in entries}:
            raise refuse("Can not update config in black list.", ResponseCode.NO_PERMISSION)
        changes = parse_updates(NamesrvOptions, entries)
        if entries:
            texts = {entry.key: entry.value for entry in entries}
            yield from outcome(state.in_thread(update_properties, state.options.config_store_path, texts))
    except KeyNotAllowed as error:
        raise refuse(str(error), ResponseCode.NO_PERMISSION) from error
    except ConfigError as error:
        raise refuse(str(error), ResponseCode.INVALID_PARAMETER) from error
    except OSError as error:
        raise refuse(f"settings not written: {error}") from error
    for name, value in changes.items():
        setattr(state.options, name, value)
