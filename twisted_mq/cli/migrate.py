"""Implements `mq migrate`: a store in files from one whose queues or tables are in RocksDB."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from twisted_mq.cli.backup import print_report
from twisted_mq.cli.errors import CliError
from twisted_mq.cli.output import progress
from twisted_mq.cli.store_options import json_option, require_numpy, store_arguments
from twisted_mq.extras import require
from twisted_mq.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from twisted_mq.storage.tools.rocksdb_tables import RocksTables

V2 = "rdb"
TOPICS, GROUPS, OFFSETS = "topics", "subscriptionGroups", "consumerOffsets"
DEFAULT, FORBIDDEN = "default", "forbidden"
"""Column families."""


@click.command(short_help="Convert a store in RocksDB to a store in files.")
@store_arguments
@click.argument("target", type=click.Path())
@click.option("--copy", "copies", is_flag=True, help="Copy full log files instead of creating hard links.")
@json_option
def migrate(directory: str, commit_log: str | None, target: str, copies: bool, as_json: bool) -> None:
    """Convert an Apache broker's store in DIRECTORY to a store in TARGET, an empty or new directory. Its consume queues
    (storeType=defaultRocksDB) or its tables (configManagerVersion=v1 or v2) are in RocksDB. The broker must be stopped.

    Topics, groups and offsets are read from RocksDB; queues and index are rebuilt from the log, and all is verified. DIRECTORY
    is not changed. Offsets of pull consumers that commit by themselves and the timer's wheel are rebuilt too.

    \b
    Example:
      mq migrate /data/rocketmq/store ~/store
    """
    require_numpy()
    require("RocksDB", "migrate")
    from twisted_mq.storage.columns.walk import LogFiles
    from twisted_mq.storage.tools.backup import back_up

    log = commit_log or os.path.join(directory, "commitlog")
    tables = read_tables(os.path.join(directory, "config"))
    with tempfile.TemporaryDirectory(prefix="mq-migrate-") as staged:
        _stage(directory, staged, tables)
        with progress("copying", LogFiles(directory, log).size_bytes) as advance:
            report = back_up(staged, target, log, int(time.time() * 1000), links=not copies, advance=advance)
    print_report(report, as_json)


def _stage(directory: str, staged: str, tables: RocksTables | None) -> None:
    """Make a store without its log: the tables of RocksDB, and the files next to them."""
    config = os.path.join(staged, "config")
    os.mkdir(config)
    source = os.path.join(directory, "config")
    for name in sorted(os.listdir(source)):
        path = os.path.join(source, name)
        if os.path.isfile(path):
            shutil.copy2(path, os.path.join(config, name))
    if tables is not None:
        tables.write(config)


def read_tables(config: str) -> RocksTables | None:
    """Return the tables in RocksDB below a store's `config`; None if they are files. Raises CliError for damaged ones."""
    from twisted_mq.storage.tools.rocksdb_tables import tables_of_v1, tables_of_v2

    try:
        if os.path.isdir(os.path.join(config, V2)):
            with _opened(os.path.join(config, V2)) as rows:
                return tables_of_v2(rows(DEFAULT))
        if os.path.isdir(os.path.join(config, TOPICS)):
            with (
                _opened(os.path.join(config, TOPICS)) as topics,
                _opened(os.path.join(config, GROUPS)) as groups,
                _opened(os.path.join(config, OFFSETS)) as offsets,
            ):
                return tables_of_v1(topics(DEFAULT), groups(DEFAULT), groups(FORBIDDEN), offsets(DEFAULT))
    except (ProtocolError, ValueError) as error:
        raise CliError(f"{config}: {error}", "the RocksDB tables are not in the format of 5.3.3") from error
    return None


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Yield a function from a column family to its keys and values. The database is not changed. Raises CliError."""
    from rocksdict import AccessType, Options, Rdict

    def options() -> Options:
        return Options(raw_mode=True)

    try:
        families = {name: options() for name in Rdict.list_cf(path, options())}
        database = Rdict(path, options(), families, AccessType.read_only(False))
    except Exception as error:  # rocksdict raises no other class
        raise CliError(
            f"{path}: {error}", "stop its broker and check it with Apache's `mqadmin rocksDBConfigToJson`"
        ) from error
    try:

        def rows(family: str) -> Iterator[tuple[bytes, bytes]]:
            if family not in families:
                return
            for key, value in database.get_column_family(family).items():
                assert isinstance(key, bytes) and isinstance(value, bytes)  # raw_mode
                yield key, value

        yield rows
    finally:
        database.close()
