"""`mq` as it is installed: it says what to install where the command line's own packages are not there."""

from __future__ import annotations

from twisted_mq.cli.errors import fail
from twisted_mq.extras import MissingExtra, require


def main() -> None:
    """Entry point."""
    try:
        require("mq", "cli")
    except MissingExtra as error:
        fail("mq", error)
    from twisted_mq.cli.mq import main

    main()
