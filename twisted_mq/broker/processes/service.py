"""The services of a supervisor: its brokers' processes and, if the settings say so, their metrics on one page."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet import defer, interfaces

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.processes.supervisor import Supervisor, spawner, words_of_children
from twisted_mq.extras import require
from twisted_mq.logs import Logger
from twisted_mq.reactor_threads import threads_of
from twisted_mq.remoting.listen import bind, listen


class SupervisorService(Supervisor):
    """Runs `count` brokers that share these settings and these words of the command line.

    The metrics page listens where that of a single broker would. Raises PortError, MissingExtra at the start.
    """

    log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        count: int,
        words: Sequence[str],
        reactor: interfaces.IReactorTime,
        twistd: Sequence[str] = (),
    ) -> None:
        super().__init__(options.broker_name, count, spawner(reactor, words_of_children(words), twistd), reactor)
        self.metrics_port = 0
        self._options = options
        self._page: interfaces.IListeningPort | None = None

    def startService(self) -> None:
        if self._options.shows_metrics:
            self._page = self._listen()
        super().startService()

    def _listen(self) -> interfaces.IListeningPort:
        require("metricsExporterType=PROM", "metrics")
        from twisted_mq.broker.processes.site import supervisor_site

        options = self._options
        host = options.metrics_prom_exporter_host or options.broker_ip1 or options.bind_address
        bound = bind(host, options.metrics_prom_exporter_port, "metricsPromExporterPort")
        self.metrics_port = bound.getsockname()[1]
        site = supervisor_site(self.children, self._reactor, threads_of(self._reactor))
        page = listen(interfaces.IReactorSocket(self._reactor), bound, site)
        self.log.info("metrics of all brokers at http://{host}:{port}/metrics", host=host, port=self.metrics_port)
        return page

    async def _stop(self, page: interfaces.IListeningPort | None) -> None:
        if page is not None:
            await defer.maybeDeferred(page.stopListening)
        await super().stopService()

    def stopService(self) -> defer.Deferred[None]:
        page, self._page = self._page, None
        return defer.ensureDeferred(self._stop(page))
