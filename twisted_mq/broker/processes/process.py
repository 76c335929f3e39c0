"""Runs `twistd --nodaemon` in a child process of a supervisor: `python -m twisted_mq.broker.processes.process WORDS`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Leave the group of the terminal, so that Ctrl-C reaches the supervisor alone, and run the broker."""
    os.setpgid(0, 0)
    sys.argv = ["twistd", "--nodaemon", "--pidfile=", *sys.argv[1:]]
    from twisted.scripts.twistd import run

    run()


if __name__ == "__main__":
    main()
