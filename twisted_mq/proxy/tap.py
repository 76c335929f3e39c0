"""`twistd mqproxy`: options and the service of one proxy process."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.python import usage

from twisted_mq.config.command_line import DaemonOptions
from twisted_mq.config.errors import ConfigError
from twisted_mq.config.startup import Daemon
from twisted_mq.extras import MissingExtra, require
from twisted_mq.logs import log_to_twisted
from twisted_mq.proxy.options import ProxyServiceOptions, load_proxy_options
from twisted_mq.remoting.listen import PortError


class Options(DaemonOptions[ProxyServiceOptions]):
    synopsis = "[options]"
    longdesc = """Run a RocketMQ proxy in cluster mode: it serves gRPC clients of 5.x for brokers of this project or of Apache.

    Example: twistd --nodaemon --pidfile= mqproxy --config rmq-proxy.json --namesrv 127.0.0.1:9876"""
    daemon = "mqproxy"
    settings_class = ProxyServiceOptions
    java_keys = {"port": "grpcServerPort", "bind": "bindAddress", "namesrv": "namesrvAddr"}
    optParameters = [
        ["config", "c", None, "rmq-proxy.json, in the format of Apache's -pc"],
        ["port", None, None, "port for gRPC clients (grpcServerPort, 8081)"],
        ["bind", None, None, "address to listen on (bindAddress, 0.0.0.0)"],
        ["namesrv", "n", None, "name servers, host:port separated by semicolons (namesrvAddr)"],
    ]

    def postOptions(self) -> None:
        require("the proxy", "proxy")
        log_to_twisted()
        self.settings = load_proxy_options(
            self["config"],
            ProxyServiceOptions,
            self.overrides(),
            ignore_unsupported=bool(self["ignore-unsupported"]),
            strict=bool(self["strict"]),
        )
        if not self.settings.name_servers:
            raise usage.UsageError("--namesrv, namesrvAddr or the environment variable NAMESRV_ADDR is required")


def makeService(options: Options, reactor: IReactorTime | None = None) -> Daemon:
    """Return the services of one proxy process."""
    from twisted_mq.proxy.cluster_service import ProxyService

    if reactor is None:
        from twisted.internet import reactor as installed

        reactor = installed
    daemon = Daemon(
        options.daemon,
        (PortError, ConfigError, MissingExtra),
        options.settings.bind_address,
        options.umask,
        options.log_path,
        reactor,
        to_stdout=options.logs_to_stdout,
    )
    ProxyService(options.settings, reactor).setServiceParent(daemon)
    return daemon
