"""Maps optional parts to the extras that they need; setup.cfg has all of an extra's packages."""

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
    "proxy": ("google", "javaproperties"),
    "tls": ("OpenSSL", "service_identity"),
    # Spark's workers need these too; matplotlib is for the report
    "spark": ("numpy", "pyarrow", "pyspark"),
    "zstd": ("zstandard",),
}


class MissingExtra(ImportError):
    """Raised when packages are missing; the text names them and the command that installs them."""


def require(part: str, extra: str, *only: str) -> None:
    """Check that all packages of the extra, or those of `only`, are installed, without importing them. Raises MissingExtra."""
    missing = [name for name in only or EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtra(f'{part} needs {", ".join(missing)}: pip install "rocketmq-twisted[{extra}]"')
