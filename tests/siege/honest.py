"""The honest load: `python -m tests.siege.honest NAMESRV SECONDS TIMEOUT`.

Sends, transactions, delayed messages and messages that are popped, each at a steady pace whatever the answers do; consumers of
all of them. Prints one JSON object at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable

import attrs

from tests.siege.names import (
    DELAY_TOPIC,
    HONEST_GROUP,
    HONEST_PRODUCERS,
    HONEST_TOPIC,
    POP_GROUP,
    POP_TOPIC,
    TRANSACTION_TOPIC,
)
from tests.soak.load import percentile
from twisted_mq.aio import (
    ConsumerOptions,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)

RATES = {"send": 40.0, "pop": 10.0, "transaction": 5.0, "delayed": 5.0}
"""Messages a second by kind."""
DELAY_SECONDS = 2.0
DRAIN_SECONDS = 90.0
"""In which all that was acknowledged is delivered: a transaction that is asked about again comes late."""
SETTLE_SECONDS = 3.0
_NUMBER = re.compile(r"\d+(\.\d+)?")
"""Errors are counted by what is left without numbers."""


@attrs.define
class Kind:
    """A kind of message: acknowledged and delivered ones."""

    attempted: set[str] = attrs.field(factory=set)
    acknowledged: set[str] = attrs.field(factory=set)
    delivered: Counter[str] = attrs.field(factory=Counter)
    not_to_be_delivered: set[str] = attrs.field(factory=set)
    ms_of_minute: defaultdict[int, list[float]] = attrs.field(factory=lambda: defaultdict(list))
    """Minute of the run -> the times of its sends in ms."""
    late_ms: list[float] = attrs.field(factory=list)
    """The time from when each send was due until it began: the clients' own part, large on a machine with too few processors."""
    errors: Counter[str] = attrs.field(factory=Counter)
    early: int = 0

    def outcome(self) -> dict[str, object]:
        """As JSON shows it. `p99_ms_of_minutes` tells whether a few minutes are slow, or all."""
        minutes = [sorted(ms) for _, ms in sorted(self.ms_of_minute.items())]
        ms = [one for minute in minutes for one in minute]
        return {
            "acknowledged": len(self.acknowledged),
            "errors": dict(self.errors),
            "missing": len(self.acknowledged - self.not_to_be_delivered - self.delivered.keys()),
            "forged": len(self.delivered.keys() & self.not_to_be_delivered),
            "unknown": len({name for name in self.delivered if name.startswith("siege-")} - self.attempted),
            "again": sum(count - 1 for count in self.delivered.values()),
            "early": self.early,
            "p50_ms": round(percentile(ms, 50), 2),
            "p99_ms": round(percentile(ms, 99), 2),
            "p99_ms_of_minutes": [round(minute[len(minute) * 99 // 100]) for minute in minutes],
            "most_ms": round(max(ms), 2),
            "late_p99_ms": round(percentile(sorted(self.late_ms), 99), 2),
        }  # fmt: skip


Send = Callable[[str], Awaitable[None]]


class Load:
    """All kinds, for a time."""

    def __init__(self, namesrv: str, seconds: float, timeout: float) -> None:
        self._timeout = timeout
        self._namesrv = namesrv
        self._seconds = seconds
        self.kinds = {name: Kind() for name in RATES}

    async def run(self) -> None:
        """Send and consume until the time is over and all is delivered."""
        async with contextlib.AsyncExitStack() as stack:
            producer = await stack.enter_async_context(Producer(self._namesrv, group=HONEST_PRODUCERS))
            deciding = TransactionProducer(self._namesrv, group=f"{HONEST_PRODUCERS}-t", check=self._decide)
            transactions = await stack.enter_async_context(deciding)
            topics = {HONEST_TOPIC: "send", TRANSACTION_TOPIC: "transaction", DELAY_TOPIC: "delayed"}
            consumer = PushConsumer(self._namesrv, group=HONEST_GROUP, topics=dict.fromkeys(topics, "*"))
            popping = PushConsumer(
                self._namesrv, group=POP_GROUP, topics={POP_TOPIC: "*"}, options=ConsumerOptions(client_rebalance=False)
            )
            tasks = [
                asyncio.create_task(self._consume(await stack.enter_async_context(one), kinds))
                for one, kinds in ((consumer, topics), (popping, {POP_TOPIC: "pop"}))
            ]
            await asyncio.sleep(SETTLE_SECONDS)
            sends: dict[str, Send] = {
                "send": lambda name: self._send(producer, "send", Message(HONEST_TOPIC, name.encode())),
                "pop": lambda name: self._send(producer, "pop", Message(POP_TOPIC, name.encode())),
                "delayed": lambda name: self._send(
                    producer, "delayed", Message(DELAY_TOPIC, name.encode(), delay_time_seconds=DELAY_SECONDS,
                                                 properties={"due": str(time.time() + DELAY_SECONDS)})
                ),
                "transaction": lambda name: self._transact(transactions, name),
            }  # fmt: skip
            await asyncio.gather(*(self._pace(kind, send) for kind, send in sends.items()))
            await self._drained()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pace(self, kind: str, send: Send) -> None:
        """Begin a send whenever one is due, and wait for all at the end."""
        began, running, number = time.monotonic(), set[asyncio.Task[None]](), 0
        while (due := number / RATES[kind]) < self._seconds:
            await asyncio.sleep(max(0.0, began + due - time.monotonic()))
            task = asyncio.create_task(self._timed(kind, f"siege-{kind}-{number}", send, began + due))
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
        await asyncio.gather(*running)

    async def _timed(self, kind: str, name: str, send: Send, due: float) -> None:
        self.kinds[kind].attempted.add(name)
        self.kinds[kind].late_ms.append(1000 * (time.monotonic() - due))
        try:
            await send(name)
        except Exception as error:  # each is told at the end
            self.kinds[kind].errors[_NUMBER.sub("N", f"{type(error).__name__}: {error}")[:200]] += 1
        else:
            minute = int(int(name.rpartition("-")[2]) / RATES[kind] // 60)
            self.kinds[kind].ms_of_minute[minute].append(1000 * (time.monotonic() - due))

    async def _send(self, producer: Producer, kind: str, message: Message) -> None:
        await producer.send(message, timeout=self._timeout)
        self.kinds[kind].acknowledged.add(message.body.decode())

    async def _transact(self, producer: TransactionProducer, name: str) -> None:
        """Every second one is rolled back, every fifth decided when the broker asks."""
        kind = self.kinds["transaction"]
        if self._decision(name) is TransactionState.ROLLBACK:
            kind.not_to_be_delivered.add(name)
        later = int(name.rpartition("-")[2]) % 5 == 0

        async def execute(message: Message) -> TransactionState:
            return TransactionState.UNKNOWN if later else self._decision(name)

        await producer.send_in_transaction(Message(TRANSACTION_TOPIC, name.encode()), execute, timeout=self._timeout)
        kind.acknowledged.add(name)

    @staticmethod
    def _decision(name: str) -> TransactionState:
        return TransactionState.ROLLBACK if int(name.rpartition("-")[2]) % 2 else TransactionState.COMMIT

    async def _decide(self, message: MessageExt) -> TransactionState:
        return self._decision(message.body.decode())

    async def _consume(self, consumer: PushConsumer, kinds: dict[str, str]) -> None:
        async for message in consumer:
            kind = self.kinds[kinds.get(message.topic, "send")]
            kind.delivered[message.body.decode(errors="replace")] += 1
            due = message.properties.get("due")
            kind.early += due is not None and time.time() < float(due) - 0.1
            await message.ack()

    async def _drained(self) -> None:
        end = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < end and any(
            kind.outcome()["missing"] for kind in self.kinds.values() if kind.ms_of_minute
        ):
            await asyncio.sleep(0.5)


def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    load = Load(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
    asyncio.run(load.run())
    print(json.dumps({name: kind.outcome() for name, kind in load.kinds.items()}), flush=True)


if __name__ == "__main__":
    main()
