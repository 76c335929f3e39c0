"""Paths and URIs on any file system that Arrow knows: local ones, S3, HDFS."""

from __future__ import annotations

import functools
import os
from urllib.parse import unquote

from pyarrow import fs

_OLD_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's schemes -> Arrow's schemes."""


@functools.lru_cache(maxsize=64)
def locate(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path there."""
    if "://" not in uri:
        return fs.LocalFileSystem(), os.path.abspath(uri)
    scheme, _, rest = uri.partition("://")
    system, path = fs.FileSystem.from_uri(f"{_OLD_SCHEMES.get(scheme, scheme)}://{rest}")
    return system, path.rstrip("/")


def is_remote(uri: str) -> bool:
    """Return True if each read of a path or URI is a request to another machine."""
    return not isinstance(locate(uri)[0], fs.LocalFileSystem)


def local_path(uri: str) -> str:
    """Return `/data/a store` for `file:/data/a%20store` and `file:///data/a%20store`; tasks may run in other directories."""
    if uri.startswith("file:"):
        return "/" + unquote(uri[len("file:") :]).lstrip("/")
    return uri if "://" in uri else os.path.abspath(uri)
