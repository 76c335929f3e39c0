"""Implements `mq store`: reads a store's files, of any broker; few commands change them, and only without a running broker."""

from __future__ import annotations

import click

from twisted_mq.cli.store_dump import dump
from twisted_mq.cli.store_rebuild import rebuild
from twisted_mq.cli.store_repair import repair
from twisted_mq.cli.store_replicas import diff, truncate
from twisted_mq.cli.store_sizes import sizes
from twisted_mq.cli.store_verify import verify


@click.group(short_help="Inspect and repair the files of a store.")
def store() -> None:
    """Inspect the files of a store of this project or of Apache's broker. The broker may be running.

    repair and rebuild only show what they would do. With --apply they do it; then the broker must be stopped.

    \b
    Example:
      mq store verify ~/store
    """


for _command in (dump, verify, sizes, repair, rebuild, diff, truncate):
    store.add_command(_command)
