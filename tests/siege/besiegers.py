"""Runs all attacks against live servers until its input ends: `python -m tests.siege.besiegers PORTS LARGE SEED`.

As tests.soak.strangers, from addresses of their own: 127.0.1.1 and the next ones, so that no share is that of honest clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from random import Random

import attrs

from tests.siege.attacks import attacks
from tests.soak.strangers import Crowd, run
from twisted_mq.storage.files.system_calls import raise_descriptor_limit

ADDRESSES = 8


class Besiegers(Crowd):
    """Strangers at ADDRESSES hosts."""

    def local_address(self) -> tuple[str, int] | None:
        return f"127.0.1.{self._random.randrange(1, ADDRESSES + 1)}", 0


def main() -> None:
    ports, large, seed = sys.argv[1:]
    raise_descriptor_limit()
    with contextlib.suppress(KeyboardInterrupt):
        crowd = Besiegers(json.loads(ports), Random(int(seed)))
        asyncio.run(run(crowd, attacks(int(large))))
        seen = {name: attrs.asdict(one) for name, one in crowd.seen.items()}
        print(json.dumps({"connections": crowd.most_open, "attacks": seen}))


if __name__ == "__main__":
    main()
