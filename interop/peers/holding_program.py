"""A process with a session: prints what happens to it, and after a pause first whether it holds. Argument: the address."""

from __future__ import annotations

import sys

from twisted.internet import reactor, task

from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.connect import coordinator_for
from twisted_mq.coordination.settings import CoordinatorSettings, boot_seconds

SESSION_SECONDS = 2.0
TURN_SECONDS = 0.01
PAUSE_SECONDS = 3.0


def say(line: str) -> None:
    print(line, flush=True)


def main(address: str) -> None:
    coordinator = coordinator_for(CoordinatorSettings(parse_address(address), SESSION_SECONDS), reactor)
    coordinator.listen(lambda event: say(event.name))
    coordinator.start().addCallback(lambda _: say("holds" if coordinator.holds() else "does not hold"))
    last = [boot_seconds()]

    def turn() -> None:
        before, last[0] = last[0], boot_seconds()
        if last[0] - before > PAUSE_SECONDS:
            say("paused: holds" if coordinator.holds() else "paused: does not hold")

    task.LoopingCall(turn).start(TURN_SECONDS)
    reactor.run()


if __name__ == "__main__":
    main(sys.argv[1])
