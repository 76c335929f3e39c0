"""Embedded servers whose gRPC clients are served in the two modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted_mq.proxy.cluster_service import ProxyService
from twisted_mq.proxy.options import ProxyServiceOptions
from twisted_mq.testing import EmbeddedServer


class ProxiedServer(EmbeddedServer):
    """The same behind a proxy in cluster mode."""

    _proxy: ProxyService | None = None
    proxy_options: Mapping[str, Any] = {}
    """Further settings of the proxy. It starts when its address is first asked for."""

    @property
    def proxy(self) -> ProxyService:
        """Return the proxy; it starts at the first call."""
        if self._proxy is None:
            options = ProxyServiceOptions(
                bind_address="127.0.0.1", grpc_server_port=0, namesrv_addr=self.namesrv, **self.proxy_options
            )
            self._proxy = ProxyService(options, self._thread.reactor)
            self._thread.call(self._proxy.startService)
        return self._proxy

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.proxy.port}"

    def stop(self) -> None:
        if self._proxy is not None:
            self._thread.wait_for(self._proxy.stopService)
        super().stop()


MODES = {"local": EmbeddedServer, "cluster": ProxiedServer}
