"""Slave, name server and master stand still for 30 s each under load: `python -m tests.crash.suspended`, see `make suspended`.

A suspended process (SIGSTOP) keeps its connections and answers nothing. The load is the siege's honest one: sends, transactions,
delayed messages, pops and their consumers. Sends may fail meanwhile. What was acknowledged is delivered, nothing else is.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.siege.outcome import Outcome
from tests.siege.run import Siege

SUSPENDED = ("slave", "name server", "broker")
NEVER = ("missing", "forged", "unknown", "early")


class Suspensions(Siege):
    """A siege without besiegers: its servers are suspended one after the other."""

    def __init__(self, directory: Path, seconds: float, pause: float) -> None:
        super().__init__(directory, (seconds + pause) * len(SUSPENDED) + pause)
        self._still, self._pause = seconds, pause

    @contextlib.contextmanager
    def _besiegers(self) -> Iterator[None]:
        thread = threading.Thread(target=self._suspend_each)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _suspend_each(self) -> None:
        processes = self._servers.processes
        for name in SUSPENDED:
            time.sleep(self._pause)
            processes[name].child.send_signal(signal.SIGSTOP)
            time.sleep(self._still)
            processes[name].child.send_signal(signal.SIGCONT)


def broken(outcome: Outcome) -> list[str]:
    """Return what must not be."""
    problems = [*outcome.wrong, *outcome.faults]
    for kind, seen in outcome.honest.items():
        problems += [f"{kind}: {seen[what]} {what}" for what in NEVER if seen[what]]
        if not seen["acknowledged"]:
            problems.append(f"{kind}: nothing was acknowledged")
    ended = {0, -signal.SIGTERM}
    problems += [f"{name}: exit status {code}" for name, code in outcome.exit_status.items() if code not in ended]
    if outcome.slave_behind_bytes:
        problems.append(f"the slave's log is {outcome.slave_behind_bytes} bytes behind its master's")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each stands still")
    parser.add_argument("--pause", type=float, default=10.0, help="how long all run between")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mq-suspended-") as folder:
        outcome = Suspensions(Path(folder), options.seconds, options.pause).run()
    print(outcome.text())
    problems = broken(outcome)
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
