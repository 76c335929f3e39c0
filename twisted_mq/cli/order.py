"""Implements `mq order`: strictly ordered topics, their broker groups, and the proof of their order."""

from __future__ import annotations

import click

from twisted_mq.cli.order_audit import audit
from twisted_mq.cli.ordered.commands import create, delete, move, repair, restore, retire, show


@click.group(short_help="Declare, show and move strictly ordered topics, and verify their order.")
def order() -> None:
    """Manage strictly ordered topics, whose queues survive the loss of any broker.

    At any time one broker group (a master and its slave) serves a queue. If a broker fails, the next group takes over,
    in order and without loss.

    \b
    Examples:
      mq order create Orders --queues 4 --groups broker-a,broker-b
      mq order show Orders
      mq order audit ~/broker-a/store ~/broker-b/store
    """


for _command in (create, show, move, retire, restore, repair, delete, audit):
    order.add_command(_command)
