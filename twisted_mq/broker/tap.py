"""Runs `twistd mqbroker`: options and services; with --embedded-namesrv a name server in the same process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs
from twisted.application import service
from twisted.internet import defer
from twisted.internet.interfaces import IReactorTime
from twisted.python import usage

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processes.lifeline import Lifeline, is_supervised
from twisted_mq.broker.processes.numbering import MOST_BROKERS, numbered, own_file
from twisted_mq.config.command_line import DaemonOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import LogFormat
from twisted_mq.config.options import parse_updates
from twisted_mq.config.properties import read_properties
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

MakeSupervisor: TypeAlias = Callable[[list[str]], service.IService]
"""Makes the supervisor of several brokers, with more words for the command line of each."""


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
        ["brokers", None, None, f"run this many brokers (2 to {MOST_BROKERS}), each in a process of its own"],
        ["broker-number", None, None, "take the name, ports and store of this one of several brokers, from 0 on"],
    ]

    def __init__(self) -> None:
        super().__init__()
        self.namesrv_port: int | None = None
        self.brokers: int | None = None
        self.words: list[str] = []
        """The words of the command line."""

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        words = None if options is None else with_embedded_port(options)
        self.words = list(words or ())
        super().parseOptions(words)

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
        self._count_brokers()

    def _count_brokers(self) -> None:
        """Take --brokers and --broker-number. Raises UsageError, ConfigError."""
        brokers, number = self._number("brokers", 2, MOST_BROKERS), self._number("broker-number", 0, MOST_BROKERS - 1)
        if brokers is not None and number is not None:
            raise usage.UsageError("--brokers and --broker-number cannot be combined")
        last = number if brokers is None else brokers - 1
        if last is None:
            return
        try:
            settings = numbered(self.settings, last)
        except ValueError as error:
            raise usage.UsageError(str(error)) from None
        self.brokers = brokers
        if number is not None:
            self.settings = settings
            settings.broker_config_path = own_file(settings)
            apply_changes(settings, settings.broker_config_path, self.overrides())

    def _number(self, option: str, low: int, high: int) -> int | None:
        text = self[option]
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 3 and low <= int(text) <= high):
            raise usage.UsageError(f"--{option} {text}: must be a number from {low} to {high}")
        return int(text)

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


def apply_changes(settings: BrokerOptions, path: str, overrides: Mapping[str, str]) -> None:
    """Set what was changed at run time and written to a file, unless the command line sets it. Raises ConfigError."""
    if os.path.exists(path):
        entries = [entry for entry in read_properties(path) if entry.key not in overrides]
        for name, value in parse_updates(BrokerOptions, entries).items():
            setattr(settings, name, value)


class EmbeddedNamesrv(service.MultiService):
    """A name server, and a broker, or several, that are created once the name server's port is known."""

    def __init__(
        self,
        broker: BrokerOptions,
        namesrv: NamesrvOptions,
        reactor: IReactorTime,
        make_supervisor: MakeSupervisor | None = None,
    ) -> None:
        """Create both. With `make_supervisor` the brokers are processes that it starts."""
        super().__init__()
        self._make_supervisor = make_supervisor
        self._supervisor: service.IService | None = None
        self._broker = broker
        self._namesrv = namesrv
        self._reactor = reactor

    def startService(self) -> None:
        from twisted_mq.broker.broker_parts import broker_access
        from twisted_mq.broker.service import make_broker
        from twisted_mq.namesrv.service import make_namesrv

        access = broker_access(self._broker, self._reactor.seconds, threads_of(self._reactor))
        if access.checks and access.credentials is None:
            raise ConfigError(
                "must be set: the name server of this process checks it too",
                key="innerClientAuthenticationCredentials",
                value="",
            )
        if access.checks and self._make_supervisor is not None:
            raise ConfigError(
                "brokers with users of their own need a name server of its own: start mqnamesrv, leave out "
                "--embedded-namesrv",
                key="authenticationEnabled",
                value="true",
            )
        namesrv = make_namesrv(self._namesrv, self._reactor, access=access)
        namesrv.setServiceParent(self)
        super().startService()
        self._broker.namesrv_addr = ";".join(with_own(self._broker.name_servers, namesrv.port))
        if self._make_supervisor is not None:
            self._supervisor = self._make_supervisor(["--namesrv", self._broker.namesrv_addr])
            self._supervisor.setServiceParent(self)
            return
        make_broker(self._broker, self._reactor, access).setServiceParent(self)

    def stopService(self) -> defer.Deferred[object]:
        """Stop. The name server of several brokers stops after them: they unregister there."""
        stopped = defer.succeed(None) if self._supervisor is None else defer.maybeDeferred(self._supervisor.stopService)
        return stopped.addCallback(lambda _: service.MultiService.stopService(self))


def words_of_one(words: Sequence[str]) -> list[str]:
    """Return the words of each of several brokers: without those for the supervisor alone."""
    own = ("--brokers", EMBEDDED)
    left: list[str] = []
    skip = False
    for word in words:
        if skip or word.startswith(tuple(f"{one}=" for one in own)):
            skip = False
        elif word in own:
            skip = True
        else:
            left.append(word)
    return left


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
    make_supervisor = None if options.brokers is None else supervisor_maker(options, reactor)
    if options.namesrv_port is not None:
        namesrv = embedded_settings(options.settings, options.namesrv_port)
        EmbeddedNamesrv(options.settings, namesrv, reactor, make_supervisor).setServiceParent(daemon)
    elif make_supervisor is not None:
        make_supervisor([]).setServiceParent(daemon)
    else:
        from twisted_mq.broker.service import make_broker

        broker = make_broker(options.settings, reactor)
        broker.setServiceParent(daemon)
        if is_supervised():
            Lifeline(broker, reactor).setServiceParent(daemon)
    return daemon


def supervisor_maker(options: Options, reactor: IReactorTime) -> MakeSupervisor:
    """Return a function that makes the supervisor of these options' brokers, with more words for their command lines."""
    from twisted_mq.broker.processes.service import SupervisorService

    twistd = [] if options.umask is not None or options.parent is None else ["--umask", f"{options.parent['umask']:o}"]
    count, words = options.brokers or 0, words_of_one(options.words)

    def make(more: list[str]) -> SupervisorService:
        return SupervisorService(options.settings, count, [*words, *more], reactor, twistd)

    return make
