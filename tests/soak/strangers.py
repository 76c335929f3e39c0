"""Runs all attacks against live servers until its input ends: `python -m tests.soak.strangers PORTS LARGE SEED`.

PORTS is a JSON object of ports by server. Prints one JSON object at its end: how many connections were open at most, and by
attack how often it was begun, how often its connection was refused or lost, and how many bytes it was answered with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from random import Random

import attrs

from tests.soak.attacks import Attack, attacks
from twisted_mq.storage.files.system_calls import raise_descriptor_limit

ARRIVAL_SECONDS = 10.0
"""In which all have come for the first time."""
HELD_BYTES = 1 << 12
"""Buffer of a process for answers that it does not read."""


@attrs.define
class Seen:
    """Results of one attack."""

    rounds: int = 0
    broken: int = 0
    answered_bytes: int = 0


class Crowd:
    """All strangers of one run."""

    def __init__(self, ports: dict[str, int], random: Random) -> None:
        self._ports = ports
        self._random = random
        self._open = 0
        self.most_open = 0
        self.seen: dict[str, Seen] = {}

    def local_address(self) -> tuple[str, int] | None:
        """Return the local address of the next connection; None leaves it to the system."""
        return None

    async def attack(self, name: str, attack: Attack) -> None:
        """Attack with one connection after the other, without end."""
        seen = self.seen.setdefault(name, Seen())
        await asyncio.sleep(self._random.uniform(0, ARRIVAL_SECONDS))
        while True:
            try:
                await self._connection(attack, seen)
            except OSError:
                seen.broken += 1
            await asyncio.sleep(self._random.uniform(0.5, 1.5) * attack.pause_seconds)

    async def _connection(self, attack: Attack, seen: Seen) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._ports[attack.server], limit=HELD_BYTES, local_addr=self.local_address()
        )
        seen.rounds += 1
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        writing = asyncio.create_task(self._write(attack, writer))
        try:
            async with asyncio.timeout(attack.stay_seconds):
                await self._read(attack, reader, seen)
        except TimeoutError:
            pass
        finally:
            writing.cancel()
            self._open -= 1
            writer.transport.abort()

    async def _write(self, attack: Attack, writer: asyncio.StreamWriter) -> None:
        data = attack.frames(self._random)
        if not attack.slowly:
            writer.write(data)
            return
        for place in range(len(data)):
            writer.write(data[place : place + 1])
            await asyncio.sleep(1)

    async def _read(self, attack: Attack, reader: asyncio.StreamReader, seen: Seen) -> None:
        """Until the server closes the connection."""
        if not attack.reads:
            await asyncio.sleep(attack.stay_seconds)
        while data := await reader.read(1 << 18):
            seen.answered_bytes += len(data)


async def run(crowd: Crowd, table: dict[str, Attack]) -> None:
    """Until the process's input ends."""
    tasks = [
        asyncio.create_task(crowd.attack(name, attack))
        for name, attack in table.items()
        for _ in range(attack.connections)
    ]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended


def main() -> None:
    ports, large, seed = sys.argv[1:]
    raise_descriptor_limit()
    with contextlib.suppress(KeyboardInterrupt):
        crowd = Crowd(json.loads(ports), Random(int(seed)))
        asyncio.run(run(crowd, attacks(int(large))))
        seen = {name: attrs.asdict(one) for name, one in crowd.seen.items()}
        print(json.dumps({"connections": crowd.most_open, "attacks": seen}))


if __name__ == "__main__":
    main()
