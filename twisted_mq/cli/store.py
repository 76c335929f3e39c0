"""Implements `mq store`: reads a store's files, of any broker; few commands change them, and only without a running broker."""

from __future__ import annotations

import click

from twisted_mq.cli.store_dump import dump
from twisted_mq.cli.store_rebuild import rebuild
from twisted_mq.cli.store_repair import repair
from twisted_mq.cli.store_replicas import diff, truncate
from twisted_mq.cli.store_sizes import sizes
from twisted_mq.cli.store_verify import verify


@click.group(short_help="Look into a store's files: dump, verify, sizes, diff; repair, rebuild, truncate.")
def store() -> None:
    """Look into the files of a store, ours or Apache's. A broker may be running on it.

    repair and rebuild only say what they would do, until they are called with --apply; then no broker may run.

    \b
    Example:
      mq store verify ~/store
    """


for _command in (dump, verify, sizes, repair, rebuild, diff, truncate):
    store.add_command(_command)
