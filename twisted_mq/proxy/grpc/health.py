"""grpc.health.v1.Health: load balancers and orchestrators ask it whether a server takes calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted_mq.proxy.grpc.calls import Call, Method, Methods
from twisted_mq.proxy.grpc.descriptors import service
from twisted_mq.proxy.grpc.status import GrpcError, GrpcStatus

TABLE = """\
message HealthCheckRequest
  1 string service
message HealthCheckResponse
  1 HealthCheckResponse.ServingStatus status
enum HealthCheckResponse.ServingStatus
  0 UNKNOWN, 1 SERVING, 2 NOT_SERVING, 3 SERVICE_UNKNOWN
"""
HEALTH = service(
    "grpc/health/v1/health.proto",
    "grpc.health.v1.Health",
    {
        "Check": ("HealthCheckRequest", "HealthCheckResponse", False, False),
        "Watch": ("HealthCheckRequest", "HealthCheckResponse", False, True),
    },
    TABLE,
)
Answer = HEALTH.message("HealthCheckResponse")
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


class Health:
    """The state of the services of one server. All are serving until `stop`. The empty name is the server itself."""

    def __init__(self, services: Iterable[str]) -> None:
        self._names = {"", *services}
        self._stopped = False
        self._watching: dict[Call, None] = {}

    def methods(self) -> Methods:
        """Return the methods by path."""
        request = HEALTH.message("HealthCheckRequest")
        return {
            HEALTH.method_path("Check"): Method(request, self.check),
            HEALTH.method_path("Watch"): Method(request, self.watch, gives_stream=True),
        }

    def check(self, call: Call, request: Any) -> Any:
        """Return a service's status. Raises GrpcError for an unknown service."""
        if request.service not in self._names:
            raise GrpcError(GrpcStatus.NOT_FOUND, f"service {request.service} is not served")
        return Answer(status=self._status(request.service))

    async def watch(self, call: Call, request: Any) -> None:
        """Send a service's status now, and NOT_SERVING when the server stops. The call stays open until its client ends it."""
        await call.send(Answer(status=self._status(request.service)))
        if not call.is_over:
            self._watching[call] = None
            call.when_over(lambda: self._watching.pop(call, None))
        await call.ended()

    def stop(self) -> None:
        """Tell the watching clients that the server stops."""
        self._stopped = True
        for call in list(self._watching):
            call.send(Answer(status=NOT_SERVING))

    def _status(self, name: str) -> int:
        if name not in self._names:
            return SERVICE_UNKNOWN
        return NOT_SERVING if self._stopped else SERVING
