"""Which extra brings what a part cannot start without; setup.cfg has all of an extra's packages."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "access": ("yaml",),
    "broker": ("javaproperties", "numpy", "sortedcontainers", "sqlglot"),
    "cli": ("click", "javaproperties", "rich"),
    "lake": ("deltalake", "pyiceberg"),
    "console": ("klein", "jinja2"),
    "metrics": ("prometheus_client",),
    "otlp": ("grpc", "opentelemetry", "prometheus_client"),
    "lz4": ("lz4",),
    "ordered": ("javaproperties", "kazoo"),
    "opentelemetry": ("opentelemetry",),
    "migrate": ("rocksdict",),
    "pcap": ("dpkt",),
    "proxy": ("google", "h2", "javaproperties"),
    "tls": ("OpenSSL", "service_identity"),
    # what Spark's workers need too; matplotlib is the report's
    "spark": ("numpy", "pyarrow", "pyspark"),
    "zstd": ("zstandard",),
}


class MissingExtra(ImportError):
    """What is missing, and the command that installs it."""


def require(part: str, extra: str, *only: str) -> None:
    """Raises MissingExtra where a package of the extra, or one of `only`, is not installed; imports none of them."""
    missing = [name for name in only or EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtra(f'{part} needs {", ".join(missing)}: pip install "rocketmq-twisted[{extra}]"')
