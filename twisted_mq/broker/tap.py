"""Runs `twistd mqbroker`: options and services; with --embedded-namesrv a name server in the same process."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs
from twisted.application import service
from twisted.internet.interfaces import IReactorTime
from twisted.python import usage

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.command_line import DaemonOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import LogFormat
from twisted_mq.config.startup import Daemon
from twisted_mq.config.tls_options import TlsOptions
from twisted_mq.extras import MissingExtra, require
from twisted_mq.namesrv.options import LISTEN_PORT as NAMESRV_PORT
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.reactor_threads import threads_of
from twisted_mq.remoting.listen import PortError
from twisted_mq.storage.errors import StoreError

EMBEDDED = "--embedded-namesrv"
ENCRYPTION = [one.name for one in attrs.fields(TlsOptions) if one.name.startswith("tls_")]
"""Settings that an embedded name server takes from its broker."""


class Options(DaemonOptions[BrokerOptions]):
    synopsis = "[options]"
    longdesc = """Run a RocketMQ broker: it accepts messages, stores them and delivers them to consumers.

    Example: twistd --nodaemon --pidfile= mqbroker --embedded-namesrv --store /var/lib/rocketmq"""
    daemon = "mqbroker"
    settings_class = BrokerOptions
    java_keys = {
        "port": "listenPort",
        "bind": "bindAddress",
        "namesrv": "namesrvAddr",
        "store": "storePathRootDir",
        "name": "brokerName",
        "cluster": "brokerClusterName",
    }
    optParameters = [
        ["port", None, None, "port for clients (listenPort, 10911)"],
        ["bind", None, None, "address to listen on (bindAddress, 0.0.0.0)"],
        ["namesrv", "n", None, "name servers, host:port separated by semicolons (namesrvAddr)"],
        ["store", None, None, "directory of the store (storePathRootDir, ~/store)"],
        ["name", None, None, "name of the broker (brokerName, the host's name)"],
        ["cluster", None, None, "cluster of the broker (brokerClusterName, DefaultCluster)"],
        ["embedded-namesrv", None, None, "also run a name server, on this port (default: 9876)"],
    ]

    def __init__(self) -> None:
        super().__init__()
        self.namesrv_port: int | None = None

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        super().parseOptions(None if options is None else with_embedded_port(options))

    def postOptions(self) -> None:
        require("the broker", "broker")
        super().postOptions()
        self.settings.broker_config_path = self["config"] or self.settings.broker_config_path
        if self.settings.order_coordinator is not None:
            self._check_order()
        port = self["embedded-namesrv"]
        if port is not None:
            if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
                raise usage.UsageError(f"{EMBEDDED} {port}: must be a port from 0 to 65535")
            self.namesrv_port = int(port)

    def _check_order(self) -> None:
        from twisted_mq.broker.ordering.coordinator import settings_of

        try:
            settings_of(self.settings)
        except ValueError as error:
            raise usage.UsageError(str(error)) from None


def with_embedded_port(words: Sequence[str]) -> list[str]:
    """Return the command line with the port of --embedded-namesrv filled in, since users may omit it."""
    given: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == EMBEDDED:
            has_port = position < len(words) and words[position].isdigit()
            word = f"{EMBEDDED}={words[position] if has_port else NAMESRV_PORT}"
            position += has_port
        given.append(word)
    return given


class EmbeddedNamesrv(service.MultiService):
    """A name server, and a broker that is created once the name server's port is known."""

    def __init__(self, broker: BrokerOptions, namesrv: NamesrvOptions, reactor: IReactorTime) -> None:
        super().__init__()
        self._broker = broker
        self._namesrv = namesrv
        self._reactor = reactor

    def startService(self) -> None:
        from twisted_mq.broker.service import broker_access, make_broker
        from twisted_mq.namesrv.service import make_namesrv

        access = broker_access(self._broker, self._reactor.seconds, threads_of(self._reactor))
        if access.checks and access.credentials is None:
            raise ConfigError(
                "must be set: the name server of this process checks it too",
                key="innerClientAuthenticationCredentials",
                value="",
            )
        namesrv = make_namesrv(self._namesrv, self._reactor, access=access)
        namesrv.setServiceParent(self)
        super().startService()
        self._broker.namesrv_addr = ";".join(with_own(self._broker.name_servers, namesrv.port))
        make_broker(self._broker, self._reactor, access).setServiceParent(self)


def with_own(name_servers: list[str], port: int) -> list[str]:
    """Return the broker's name servers and the one of its own process."""
    own = f"127.0.0.1:{port}"
    return [*name_servers, *([] if own in name_servers else [own])]


def embedded_settings(broker: BrokerOptions, port: int) -> NamesrvOptions:
    """Return the settings of a name server that listens where its broker does and keeps its files in the broker's store."""
    directory = os.path.join(broker.store_path_root_dir, "namesrv")
    return NamesrvOptions(
        bind_address=broker.bind_address,
        listen_port=port,
        kv_config_path=os.path.join(directory, "kvConfig.json"),
        config_store_path=os.path.join(directory, "namesrv.properties"),
        **{name: getattr(broker, name) for name in ENCRYPTION},
    )


def makeService(options: Options, reactor: IReactorTime | None = None) -> Daemon:
    """Return the services of one broker process."""
    if reactor is None:
        from twisted.internet import reactor as installed

        reactor = installed
    # numpy's linear algebra is not in use here; it would start a thread per core
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    bind_address = None if options.settings.asks else options.settings.bind_address
    daemon = Daemon(
        options.daemon,
        (PortError, StoreError, ConfigError, MissingExtra),
        bind_address,
        options.umask,
        options.log_path,
        reactor,
        json_log=options.settings.log_format is LogFormat.JSON,
        to_stdout=options.logs_to_stdout,
    )
    if options.namesrv_port is None:
        from twisted_mq.broker.service import make_broker

        make_broker(options.settings, reactor).setServiceParent(daemon)
    else:
        namesrv = embedded_settings(options.settings, options.namesrv_port)
        EmbeddedNamesrv(options.settings, namesrv, reactor).setServiceParent(daemon)
    return daemon
