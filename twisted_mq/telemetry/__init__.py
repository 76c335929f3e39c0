"""OpenTelemetry for producers and consumers of any face: `from twisted_mq.telemetry import Telemetry`."""

from twisted_mq.extras import require

require("twisted_mq.telemetry", "opentelemetry")

from twisted_mq.telemetry.telemetry import Telemetry  # noqa: E402 - its imports need the extra

__all__ = ["Telemetry"]
