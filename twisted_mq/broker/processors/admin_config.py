"""The broker's own settings over the wire: codes 25 and 26 (Apache: AdminBrokerProcessor, Configuration).

Only options declared with remote=True can be changed; each value is parsed by its type and limits. A request changes
all of its keys or none. Changes are written to the file that the broker was started with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from twisted_mq.broker.clients.subscription_group_manager import SubscriptionGroupManager
from twisted_mq.broker.ha.service import HAService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.topics.topic_config_manager import TopicConfigManager
from twisted_mq.config.errors import ConfigError, KeyNotAllowed
from twisted_mq.config.options import parse_updates, shown_options
from twisted_mq.config.properties import Entry, parse_request, update_properties
from twisted_mq.config.values import value_text
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import DataVersion, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import GetBrokerConfigResponseHeader
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.channel import Answer, Channel

FIXED: dict[str, bool | int | str] = {
    "autoDeleteUnusedStats": True,
    "autoMessageVersionOnTopicLen": True,
    "disableConsumeIfConsumerReadSlowly": False,
    "duplicationEnable": False,
    "enableControllerMode": False,
    "enableDLegerCommitLog": False,
    "enableDetailStat": True,
    "enableLmq": False,
    "enableMultiDispatch": False,
    "enableRegisterProducer": True,
    "enableScheduleMessageStats": True,
    "enableSingleTopicRegister": False,
    "enableSplitRegistration": False,
    "forceRegister": True,
    "isBrokerContainer": False,
    "isInBrokerContainer": False,
    "lockInStrictMode": False,
    "maxStatsIdleTimeInMinutes": -1,
    "maxTopicLength": 127,
    "messageIndexSafe": True,
    "offsetCheckInSlave": False,
    "storeType": "default",
    "useStaticSubscription": False,
}
"""Apache's keys that are not options here, or options without effect, and the value that describes this broker."""


def settings_text(options: BrokerOptions, ip: str, port: int, ha_address: str) -> str:
    """Return the settings that GET_BROKER_CONFIG shows, with the values in effect, as sorted lines of key=value.

    A key that this broker does not read is not shown, because its value would mislead. If the broker always behaves as one
    value of such a key says, that value is shown, whatever the file says. Secrets are never shown.
    """
    values = FIXED | shown_options(options) | _resolved(ip, port, ha_address)
    return "".join(f"{key}={value_text(value)}\n" for key, value in sorted(values.items()))


def _resolved(ip: str, port: int, ha_address: str) -> dict[str, int | str]:
    """Return the settings that were left to the broker: its addresses and ports, and what a slave needs to find it."""
    resolved: dict[str, int | str] = {"brokerIP1": ip, "listenPort": port}
    if ha_address:
        ha_ip, _, ha_port = ha_address.rpartition(":")
        resolved |= {"brokerIP2": ha_ip, "haListenPort": int(ha_port)}
    return resolved


class AdminConfigParts(Protocol):
    """The parts of the broker that changes of options use."""

    options: BrokerOptions
    now_ms: Callable[[], int]
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    advertised_ip: str
    port: int
    ha: HAService

    def configure_store(self) -> None:
        """Give the changed settings to the store."""


class AdminConfigProcessor:
    """Shows and changes options."""

    log = Logger()

    def __init__(self, broker: AdminConfigParts) -> None:
        self._options = broker.options
        self._now_ms = broker.now_ms
        self._configure_store = broker.configure_store
        self._topics = broker.topics
        self._groups = broker.groups
        self._ip = broker.advertised_ip
        self._port = broker.port
        self._ha = broker.ha
        self._version = DataVersion()
        self.processors = {
            RequestCode.UPDATE_BROKER_CONFIG: self.update_config,
            RequestCode.GET_BROKER_CONFIG: self.config,
        }

    def config(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Return the settings in effect, as lines of key=value; the header carries the version, which counts changes."""
        fields = encode_header(GetBrokerConfigResponseHeader(version=encode_body(self._version).decode()))
        return command.answer(
            ext_fields=fields, body=settings_text(self._options, self._ip, self._port, self._ha.address).encode()
        )

    def update_config(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Change the options that the body names, all or none. Unlike Apache's broker, refuse a key that cannot be changed."""
        try:
            entries = parse_request(command.body)
            changes = parse_updates(type(self._options), entries)
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
        path = self._options.broker_config_path
        if path and entries:
            update_properties(path, {entry.key: entry.value for entry in entries})

    def _apply(self, channel: Channel, changes: Mapping[str, object]) -> None:
        options = self._options
        for name, value in changes.items():
            self.log.info("option changed: {name}={value} peer={peer}", name=name, value=value, peer=channel.address)
            setattr(options, name, value)
        if not changes:
            return
        self._groups.auto_create = options.auto_create_subscription_group
        self._configure_store()
        if "broker_permission" in changes:  # clients learn of the change from the name servers
            self._topics.changed_as_a_whole()
        self._version = self._version.next_version(self._now_ms(), self._version.state_version)
