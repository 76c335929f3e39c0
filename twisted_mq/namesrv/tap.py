"""Runs `twistd mqnamesrv`: options and the tree of services."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from twisted_mq.config.command_line import DaemonOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.metrics_options import LogFormat
from twisted_mq.config.startup import Daemon
from twisted_mq.extras import MissingExtra, require
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.remoting.listen import PortError


class Options(DaemonOptions[NamesrvOptions]):
    synopsis = "[options]"
    longdesc = """Run a RocketMQ name server: brokers register here, and clients ask for routes.

    Example: twistd --nodaemon --pidfile= mqnamesrv --port 9876"""
    daemon = "mqnamesrv"
    settings_class = NamesrvOptions
    java_keys = {"port": "listenPort", "bind": "bindAddress"}
    optParameters = [
        ["port", None, None, "port to listen on (listenPort, 9876)"],
        ["bind", None, None, "address to listen on (bindAddress, 0.0.0.0)"],
    ]

    def postOptions(self) -> None:
        require("the name server", "broker", "javaproperties", "sortedcontainers")
        super().postOptions()

    def overrides(self) -> dict[str, str]:
        """Return the settings that make remote updates go to the given file, as in Apache."""
        given = super().overrides()
        if self["config"] is not None:
            given.setdefault("configStorePath", self["config"])
        return given


def makeService(options: Options, reactor: IReactorTime | None = None) -> Daemon:
    """Return the services of one name server process."""
    from twisted_mq.namesrv.service import make_namesrv

    if reactor is None:
        from twisted.internet import reactor as installed

        reactor = installed
    bind_address = None if options.settings.asks else options.settings.bind_address
    daemon = Daemon(
        options.daemon,
        (PortError, ConfigError, MissingExtra),
        bind_address,
        options.umask,
        options.log_path,
        reactor,
        json_log=options.settings.log_format is LogFormat.JSON,
        to_stdout=options.logs_to_stdout,
    )
    make_namesrv(options.settings, reactor).setServiceParent(daemon)
    return daemon
