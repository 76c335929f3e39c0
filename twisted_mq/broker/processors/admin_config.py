"""The broker's own settings over the wire: codes 25 and 26 (Apache: AdminBrokerProcessor, Configuration).

Only options declared with remote=True can be changed; each value is parsed by its type and limits. A request changes
all of its keys or none. Changes are written to the file that the broker was started with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from twisted_mq.broker.shown_settings import settings_text
from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.options import parse_updates
from twisted_mq.config.properties import Entry, parse_properties, update_properties
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel


def _auto_create_groups(broker: Any) -> None:
    broker.groups.auto_create = broker.options.auto_create_subscription_group


def _register_permission(broker: Any) -> None:
    """Clients learn of another permission from the name servers; what the checks kept of topics is forgotten."""
    broker.topics.changed_as_a_whole()


def _limit_store(broker: Any) -> None:
    """The store keeps its limits in its own configuration, under the same names."""
    limits = {name: getattr(broker.options, name) for name in STORE_LIMITS}
    broker.store.configure(attrs.evolve(broker.store.config, **limits))


STORE_LIMITS = (
    "max_message_size",
    "max_transfer_bytes_on_message_in_memory",
    "max_transfer_count_on_message_in_memory",
    "max_transfer_bytes_on_message_in_disk",
    "max_transfer_count_on_message_in_disk",
    "file_reserved_time",
    "delete_file_batch_max",
    "clean_file_forcibly_enable",
    "disk_max_used_space_ratio",
    "disk_space_clean_forcibly_ratio",
    "disk_space_warning_level_ratio",
)

AFTER_CHANGE: dict[str, Callable[[Any], None]] = {
    **dict.fromkeys(STORE_LIMITS, _limit_store),
    "auto_create_subscription_group": _auto_create_groups,
    "broker_permission": _register_permission,
}
"""Option -> what is to be done where somebody keeps its value; all others are read whenever they count."""


class AdminConfigProcessor:
    """Shows and changes options."""

    log = Logger()

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._version = DataVersion()
        self.processors = {
            RequestCode.UPDATE_BROKER_CONFIG: self.update_config,
            RequestCode.GET_BROKER_CONFIG: self.config,
        }

    def config(self, channel: Channel, command: RemotingCommand) -> Answer:
        """The settings in effect, as lines of key=value; the header carries the version, which counts changes."""
        fields = {"version": encode_body(self._version).decode()}
        return command.answer(ext_fields=fields, body=settings_text(self._broker).encode())

    def update_config(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Change the options that the body names, all or none. Unlike Apache's, a key that cannot be changed is refused."""
        try:
            entries = parse_properties(command.body)
            changes = parse_updates(type(self._broker.options), entries)
            self._write(entries)
        except KeyNotAllowed as error:
            raise BrokerError(ResponseCode.NO_PERMISSION, str(error)) from error
        except ConfigError as error:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, str(error)) from error
        except OSError as error:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"settings not written: {error}") from error
        self._apply(channel, changes)
        return command.answer()

    def _write(self, entries: list[Entry]) -> None:
        path = self._broker.options.broker_config_path
        if path and entries:
            update_properties(path, {entry.key: entry.value for entry in entries})

    def _apply(self, channel: Channel, changes: dict[str, Any]) -> None:
        broker = self._broker
        for name, value in changes.items():
            self.log.info("option changed: {name}={value} peer={peer}", name=name, value=value, peer=channel.address)
            setattr(broker.options, name, value)
        for name in changes:
            if name in AFTER_CHANGE:
                AFTER_CHANGE[name](broker)
        if changes:
            self._version = self._version.next_version(broker.now_ms(), self._version.state_version)
