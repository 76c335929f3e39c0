"""Starts the installed `mq`: says what to install if the command line's own packages are missing."""

from __future__ import annotations

from twisted_mq.cli.errors import fail
from twisted_mq.extras import MissingExtra, require


def main() -> None:
    """Run `mq`."""
    try:
        require("mq", "cli")
    except MissingExtra as error:
        fail("mq", error)
    from twisted_mq.cli.mq import main

    main()
