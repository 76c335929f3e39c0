"""Defines the name server's settings: one field for each property that it uses (Apache: NamesrvConfig,
NettyServerConfig), with the same key and default.
"""

from __future__ import annotations

import attrs

from twisted_mq.config.environment import in_home
from twisted_mq.config.limits import PORT
from twisted_mq.config.metrics_options import MetricsOptions
from twisted_mq.config.options import option

LISTEN_PORT = 9876
"""The port that Apache's start-up code sets before it reads the file; NettyServerConfig's own default is 0."""


@attrs.define(kw_only=True)
class NamesrvOptions(MetricsOptions):
    """Settings of one name server. Mutable: configuration requests change those on the allow-list."""

    bind_address: str = option("0.0.0.0", "address to listen on")
    listen_port: int = option(LISTEN_PORT, "port for brokers and clients", limits=PORT)
    server_channel_max_idle_time_seconds: int = option(
        120, "seconds without data after which a connection is closed", low=1
    )
    kv_config_path: str = option(
        attrs.Factory(in_home("namesrv", "kvConfig.json")),
        "file of the key-value configuration",
        type="string",
    )
    config_store_path: str = option(
        attrs.Factory(in_home("namesrv", "namesrv.properties")),
        "file for remote updates; a file given at the start replaces it",
        type="string",
    )
    auth_config_path: str = option(
        attrs.Factory(in_home("namesrv", "config")),
        "directory of users and policies (access.json)",
        type="string",
    )
    scan_not_active_broker_interval: int = option(5000, "ms between checks for silent brokers", type="long", low=1)
    order_message_enable: bool = option(False, "routes have the topic's entry of ORDER_TOPIC_CONFIG", remote=True)
    return_order_topic_config_to_broker: bool = option(
        True, "registering brokers get all of ORDER_TOPIC_CONFIG", remote=True
    )
    support_acting_master: bool = option(False, "routes show a slave instead of a lost master", remote=True)
    enable_all_topic_list: bool = option(True, "the list of all topics is served", remote=True)
    enable_topic_list: bool = option(True, "topic lists by cluster and unit are served", remote=True)
    notify_min_broker_id_changed: bool = option(False, "notify brokers when the lowest id of their name changes")
    need_wait_for_service: bool = option(False, "refuse requests for routes for some time after the start")
    wait_seconds_for_service: int = option(45, "that time in seconds", low=0)
    delete_topic_with_broker_registration: bool = option(
        False, "remove topics that are missing in a registration", remote=True
    )
    registration_shared_secret: str | None = option(
        None,
        "secret that brokers need to register and to leave; unset: none; ours",
        type="string",
        secret=True,
    )
    config_black_list: str = option(
        "configBlackList;configStorePath;kvConfigPath",
        "keys that remote updates must not change, separated by semicolons; further restricts the allow-list",
    )

    @property
    def refused_keys(self) -> frozenset[str]:
        """Return the keys that Apache never updates, whatever the list says, and those of the list itself."""
        fixed = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")
        return frozenset((*fixed, *self.config_black_list.split(";"))) - {""}
