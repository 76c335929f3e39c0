"""Quarantine of damaged and of lost bytes: each stretch is a Parquet file in a directory, with its place and the reason.

    session.read.parquet(DIRECTORY)  # store, brokerName, file, physicalOffset, length, reason, bytes

A long stretch has several rows; `bytes` is null for bytes that are not there. Its file is named after store and place, so a
repeated task writes the same one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyarrow import fs
from pyarrow import parquet as pq

from twisted_mq.spark.file_systems import local_path, locate
from twisted_mq.spark.source.log_stretch import WINDOW_BYTES, Damage, Missing
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.stores import LogFile, Store, log_directory
from twisted_mq.storage.files.paths import file_offset

SCHEMA = pa.schema(
    [
        ("store", pa.string()),
        ("brokerName", pa.string()),
        ("file", pa.string()),
        ("physicalOffset", pa.int64()),
        ("length", pa.int64()),
        ("reason", pa.string()),
        ("bytes", pa.binary()),
    ]
)


def put_aside(store: Store, damage: Damage, directory: str) -> None:
    """Write a stretch to the directory, a path or URI, which is created if missing. Raises LogFileGone."""
    _write(_rows(store, damage), f"{_key(store)}-{damage.physical_offset:020d}", directory)


def put_loss_aside(missing: Missing, directory: str) -> None:
    """Write a stretch that the log does not have to the directory, a path or URI, which is created if missing."""
    row = {
        "store": missing.store.name,
        "brokerName": missing.store.broker_name,
        "file": missing.file,
        "physicalOffset": missing.begin,
        "length": missing.end - missing.begin,
        "reason": missing.reason,
        "bytes": None,
    }
    _write([row], f"{_key(missing.store)}-{missing.begin:020d}-lost", directory)


def _key(store: Store) -> str:
    return f"{zlib.crc32(store.name.encode()):08x}"


def _write(rows: Iterable[Mapping[str, object]], name: str, directory: str) -> None:
    system, root = locate(local_path(directory))
    system.create_dir(root, recursive=True)
    unfinished = f"{root}/.{name}.parquet"
    with system.open_output_stream(unfinished) as stream, pq.ParquetWriter(stream, SCHEMA) as writer:
        for row in rows:
            writer.write_table(pa.Table.from_pylist([row], SCHEMA))
    system.move(unfinished, f"{root}/{name}.parquet")


def _rows(store: Store, damage: Damage) -> Iterator[dict[str, object]]:
    log = _opened(store, damage.file)
    begin = damage.physical_offset - log.first_offset
    for position in range(begin, begin + damage.length, WINDOW_BYTES):
        data = log.read_only(position, min(WINDOW_BYTES, begin + damage.length - position))
        yield {
            "store": store.name,
            "brokerName": store.broker_name,
            "file": damage.file,
            "physicalOffset": log.first_offset + position,
            "length": len(data),
            "reason": damage.reason,
            "bytes": data,
        }


def _opened(store: Store, name: str) -> OpenLog:
    path = f"{log_directory(store)}/{name}"
    info: fs.FileInfo = locate(store.uri)[0].get_file_info(path)
    return OpenLog(store, LogFile(path, file_offset(name) or 0, info.size or 0))
