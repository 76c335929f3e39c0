"""Paths and URIs on any file system that Arrow knows: local ones, S3, HDFS."""

from __future__ import annotations

import functools
import importlib.util
import os
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from twisted_mq.spark.errors import NoFileSystem

_OLD_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's schemes -> Arrow's schemes."""
_HDFS = "hdfs"


@functools.lru_cache(maxsize=64)
def locate(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path there. Raises NoFileSystem."""
    if "://" not in uri:
        return fs.LocalFileSystem(), os.path.abspath(uri)
    scheme, _, rest = uri.partition("://")
    if scheme == _HDFS:
        system, path = _hdfs(uri)
    else:
        system, path = fs.FileSystem.from_uri(f"{_OLD_SCHEMES.get(scheme, scheme)}://{rest}")
    return system, path.rstrip("/")


def _hdfs(uri: str) -> tuple[fs.FileSystem, str]:
    """Return HDFS by hdfs-native where that is installed, otherwise by Hadoop's own library, which runs Java in this process."""
    if importlib.util.find_spec("hdfs_native") is None:
        try:
            located: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
        except OSError as error:
            reason = str(error).partition("\n")[0]
            raise NoFileSystem(f"{uri}: install hdfs-native, or set what Hadoop's libhdfs needs: {reason}") from error
        return located
    from hdfs_native.fsspec import HdfsFileSystem

    parts = urlsplit(uri)
    native = HdfsFileSystem(parts.hostname, parts.port)
    return fs.PyFileSystem(fs.FSSpecHandler(native)), unquote(parts.path)


def is_remote(uri: str) -> bool:
    """Return True if each read of a path or URI is a request to another machine."""
    return not isinstance(locate(uri)[0], fs.LocalFileSystem)


def local_path(uri: str) -> str:
    """Return `/data/a store` for `file:/data/a%20store` and `file:///data/a%20store`; tasks may run in other directories."""
    if uri.startswith("file:"):
        return "/" + unquote(uri[len("file:") :]).lstrip("/")
    return uri if "://" in uri else os.path.abspath(uri)
