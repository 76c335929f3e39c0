"""`mq order`: strictly ordered topics, and the proof of their order."""

from __future__ import annotations

import click

from twisted_mq.cli.order_audit import audit


@click.group(short_help="Strictly ordered topics: prove their order.")
def order() -> None:
    """Strictly ordered topics, whose queues outlive the loss of any broker.

    \b
    Example:
      mq order audit ~/broker-a/store ~/broker-b/store
    """


order.add_command(audit)
