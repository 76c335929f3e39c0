"""Implements `mq order`: strictly ordered topics, their broker groups, and the proof of their order."""

from __future__ import annotations

import click

from twisted_mq.cli.order_audit import audit
from twisted_mq.cli.ordered.commands import create, delete, move, repair, restore, retire, show


@click.group(short_help="Strictly ordered topics: declare, show, hand over; prove their order.")
def order() -> None:
    """Strictly ordered topics, whose queues outlive the loss of any broker.

    Each queue is taken by one broker group at a time, a master and its slave, and goes on with the next group when a broker
    fails: in order, with nothing lost.

    \b
    Examples:
      mq order create Orders --queues 4 --groups broker-a,broker-b
      mq order show Orders
      mq order audit ~/broker-a/store ~/broker-b/store
    """


for _command in (create, show, move, retire, restore, repair, delete, audit):
    order.add_command(_command)
