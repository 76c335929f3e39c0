"""Derives the settings of one of several brokers that share a configuration: its name, its ports, its store.

brokerName=broker, listenPort=10911, storePathRootDir=/store, number 2:
broker-2, 10931 (fast 10929, slaves 10932), /store/broker-2
"""

from __future__ import annotations

import os

import attrs

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.options import option_fields

MOST_BROKERS = 64
PORT_STEP = 10
"""The distance between the ports of two brokers: each has listenPort, the fast port below and the slaves' port above."""

PORTS = ("listen_port", "ha_listen_port", "grpc_server_port", "metrics_prom_exporter_port")
FOLDERS = ("store_path_root_dir", "store_path_commit_log")
HIGHEST_PORT = 65535


def numbered_name(name: str, number: int) -> str:
    """Return the name of the broker with that number, from 0 on."""
    return f"{name}-{number}"


def numbered(options: BrokerOptions, number: int) -> BrokerOptions:
    """Return the settings of the broker with that number. Raises ValueError, which names the key, for a port above 65535.

    Ports that are 0 (any free one) or -1 (none) stay.
    """
    name = numbered_name(options.broker_name, number)
    one = attrs.evolve(options, broker_name=name)
    keys = {field.name: key for key, field in option_fields(BrokerOptions).items()}
    for port in PORTS:
        first = getattr(options, port)
        if first > 0:
            setattr(one, port, first + PORT_STEP * number)
            if first + PORT_STEP * number > HIGHEST_PORT:
                raise ValueError(f"{keys[port]}={first} leaves no port for broker {number}: use a lower one")
    for folder in FOLDERS:
        if getattr(options, folder) is not None:
            setattr(one, folder, os.path.join(getattr(options, folder), name))
    return one


def own_file(options: BrokerOptions) -> str:
    """Return the file with the settings that were changed at run time of this broker alone."""
    return os.path.join(options.store_path_root_dir, "config", "broker.conf")
