"""Which extra brings what a part cannot start without; setup.cfg has all of an extra's packages."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "access": ("yaml",),
    "broker": ("numpy", "sqlglot"),
    "cli": ("click", "rich"),
    "lake": ("deltalake", "pyiceberg"),
    "console": ("klein", "jinja2"),
    "metrics": ("prometheus_client",),
    "otlp": ("grpc", "opentelemetry", "prometheus_client"),
    "ordered": ("kazoo",),
    "opentelemetry": ("opentelemetry",),
    "pcap": ("dpkt",),
    "proxy": ("h2", "google"),
    "tls": ("OpenSSL", "service_identity"),
    # what Spark's workers need too; matplotlib is the report's
    "spark": ("numpy", "pyarrow", "pyspark"),
}


class MissingExtra(ImportError):
    """What is missing, and the command that installs it."""


def require(part: str, extra: str) -> None:
    """Raises MissingExtra where a package of the extra is not installed; imports none of them."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtra(f'{part} needs {", ".join(missing)}: pip install "rocketmq-twisted[{extra}]"')
