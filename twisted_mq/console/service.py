"""Runs a console that listens: its port, its sessions' connections, and their end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet import defer, interfaces
from twisted.internet.protocol import ServerFactory
from twisted.internet.task import deferLater
from twisted.web.http import Request
from twisted.web.resource import IResource
from twisted.web.server import Request as PageRequest

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.figures import BrokerFigures, all_figures
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.clocks import time_of_day, wall_ms
from twisted_mq.console.app import FAILURES, ConsoleApp, explained
from twisted_mq.console.history import EVERY_SECONDS, History
from twisted_mq.console.jobs import Jobs
from twisted_mq.console.login import Login
from twisted_mq.console.prometheus import ASK_SECONDS, MOST_BYTES, PrometheusHistory
from twisted_mq.console.sessions import Attempts, ConsoleSessions, OneTimeToken, Secret, new_secret
from twisted_mq.console.settings import TLS_CERT, TLS_KEY, ConsoleSettings, NamedCluster, OwnCertificate
from twisted_mq.encryption.clients import encrypted
from twisted_mq.extras import require
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.remoting.client import Connect, RemotingClient, tcp_endpoint
from twisted_mq.remoting.listen import bind, listen
from twisted_mq.routing.address_server import http_get
from twisted_mq.web_bounds import BoundedRequest, BoundedSite

IDLE_SECONDS = 60.0
MOST_FORM_BYTES = 1024 * 1024
"""The longest form; the connection of a longer one is closed."""
FORM_SECONDS = 60.0
"""The time in which a whole form must arrive."""


def _encrypted(options: ClientOptions, reactor: interfaces.IReactorTime) -> Connect | None:
    """Return the connection with TLS. Raises ConfigError for certificates that cannot be read, MissingExtra."""
    if options.tls is None:
        return None
    return encrypted(
        tcp_endpoint(reactor, options.connect_timeout_seconds), options.tls, time_of_day(reactor)(), reactor
    )


class ConsoleRequest(BoundedRequest):
    """A request with a form."""

    most_bytes = MOST_FORM_BYTES


class ConsoleSite(BoundedSite):
    """A site without a log of requests, because their addresses contain names and ids of messages."""

    requestFactory = ConsoleRequest
    request_seconds = FORM_SECONDS
    displayTracebacks = False

    def getResourceFor(self, request: PageRequest) -> IResource:
        """Return the resource of a path; a path that is not text is not found."""
        resource: IResource = super().getResourceFor(request)
        try:
            b"/".join(request.postpath or []).decode()
        except UnicodeDecodeError:
            request.postpath = [b"no-text"]
        return resource

    def acceptableProtocols(self) -> list[bytes]:
        """Offer only HTTP/1.1 on encrypted connections: the limit of a form's length is made for it."""
        return [b"http/1.1"]

    def log(self, request: Request) -> None:
        """Log nothing."""


def _served(
    site: ConsoleSite, certificate: OwnCertificate | None, reactor: interfaces.IReactorTime
) -> ServerFactory[Any]:
    """Return the factory of the site. Raises ConfigError for a certificate that cannot be read, or is not valid now,
    MissingExtra.
    """
    if certificate is None:
        return site
    require("TLS", "tls")
    from twisted_mq.encryption.contexts import PemFile, encrypted_from_the_start

    places = PemFile(TLS_CERT, certificate.path), PemFile(TLS_KEY, certificate.key_path)
    return encrypted_from_the_start(site, *places, certificate.key_password, time_of_day(reactor)(), reactor)


class ConsoleService(Service):
    """Runs between `startService` and `stopService`. `announce` is called with the addresses at which users log in.

    The constructor raises ConfigError for certificates that cannot be read, MissingExtra.
    """

    def __init__(
        self,
        settings: ConsoleSettings,
        reactor: interfaces.IReactorTime,
        announce: Callable[[str], None],
        secret: Secret = new_secret,
    ) -> None:
        self.settings = settings
        self._reactor = reactor
        self._connect = _encrypted(settings.client_options, reactor)
        self._sessions = ConsoleSessions(reactor.seconds, secret)
        self._announce = announce
        # after the # it never leaves the browser: no log of requests and no other page gets it
        self._token = OneTimeToken(lambda token: announce(f"{self.url}login#{token}"), secret)
        login = Login(settings, self._sessions, self._token, Attempts(reactor.seconds), self.admin)
        self._jobs = Jobs(lambda error: explained(error).text if isinstance(error, FAILURES) else "a bug, see the log")
        self._past: PrometheusHistory | None = None
        if settings.prometheus is not None:
            self._past = PrometheusHistory(settings.prometheus, http_get(reactor, ASK_SECONDS, MOST_BYTES))
        own = settings.own_account if settings.accounts else settings.client_options.credentials
        self._own_account = own
        self._keeps_history = self._past is None and (own is not None or not settings.accounts)
        self._own_admins: dict[str, AdminCalls] = {}
        self._histories = {
            name: History(functools.partial(self._figures, name), wall_ms(reactor)) for name in settings.clusters
        }
        self._samplers: list[PeriodicJob] = []
        past = self._past
        kept = dict(self._histories) if past is None else dict.fromkeys(settings.clusters, past)
        self._app = ConsoleApp(settings, self._sessions, login, self._jobs, kept)
        site = ConsoleSite(self._app.resource(), timeout=IDLE_SECONDS, reactor=reactor)
        site.noisy = False
        self._factory = _served(site, settings.certificate, reactor)
        self._listening: interfaces.IListeningPort | None = None
        self.port = settings.port

    @property
    def url(self) -> str:
        """Return the address for browsers."""
        host = f"[{self.settings.bind}]" if ":" in self.settings.bind else self.settings.bind
        scheme = "http" if self.settings.certificate is None else "https"
        return f"{scheme}://{host}:{self.port}/"

    def admin(self, credentials: Credentials | None, cluster: NamedCluster | None = None) -> AdminCalls:
        """Return admin calls to a cluster, or to the first one, with connections of their own, signed with these credentials."""
        reactor, keys = self._reactor, credentials
        options = attrs.evolve(
            self.settings.client_options,
            access_key=None if keys is None else keys.access_key,
            secret_key=None if keys is None else keys.secret_key,
        )
        return AdminCalls(
            client=RemotingClient(reactor, connect=self._connect, credentials=credentials),
            name_servers=list(self.settings.name_servers if cluster is None else cluster.name_servers),
            now_ms=wall_ms(reactor),
            sleep=lambda seconds: deferLater(reactor, seconds),
            reactor=reactor,
            credentials=credentials,
            client_options=lambda: options,
        )

    def startService(self) -> None:
        """Start to listen. Raises PortError."""
        bound = bind(self.settings.bind, self.settings.port, "--console-port")
        self.port = bound.getsockname()[1]
        self._listening = listen(interfaces.IReactorSocket(self._reactor), bound, self._factory)
        super().startService()
        if self._keeps_history:
            for name, cluster in self.settings.clusters.items():
                self._own_admins[name] = self.admin(self._own_account, cluster)
                take = self._histories[name].take
                self._samplers.append(PeriodicJob(f"history {name}", self._reactor, EVERY_SECONDS, take))

    async def _figures(self, cluster: str) -> list[BrokerFigures]:
        return await all_figures(self._own_admins[cluster])

    def invite(self) -> None:
        """Announce an address to log in; when its token is used up, another address is announced."""
        if self.settings.accounts:
            self._announce(self.url)
        else:
            self._token.renew()

    def stopService(self) -> defer.Deferred[None]:
        """Stop, and close all connections. A second call does nothing."""
        self._jobs.stop_all()
        self._sessions.end_all()
        samplers, self._samplers = self._samplers, []
        for sampler in samplers:
            sampler.stop()
        for own in self._own_admins.values():
            own.client.close()
        self._own_admins = {}
        listening, self._listening = self._listening, None
        stopped = defer.succeed(None) if listening is None else defer.maybeDeferred(listening.stopListening)
        return stopped.addCallback(lambda _: super(ConsoleService, self).stopService())
