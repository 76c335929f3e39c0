"""Messages that wait for their time: taking, waiting and delivering them, with what it costs in time and memory.

.venv/bin/python -m tests.bench.bench_timer [--messages 1000000] [--dir /dev/shm]

All wait on disk; the anonymous memory must not grow with their number. The restart fills the wheel from the log, as
after a kill. The clock is virtual: nothing waits for real.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.postpone import Postponement
from twisted_mq.broker.schedule.timer_service import TimerService
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import InnerMessage
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.timer.timer_files import TimerFiles

HOURS = 24
BATCH = 1000


class VirtualClock:
    """ms since the epoch; every call gives `now`."""

    now = 1_795_217_217_000

    def __call__(self) -> int:
        return self.now


def anonymous_mib() -> float:
    """Memory of this process that is no file's."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["RssAnon"].split()[0]) / 1024


@contextmanager
def measured(what: str, count: int) -> Iterator[None]:
    """Print what each of `count` messages cost, and the memory afterwards."""
    begin = time.process_time()
    yield
    spent = time.process_time() - begin
    per_second = count / spent if spent else 0
    print(
        f"{what:24} {spent:7.2f} s  {spent / count * 1e6:6.1f} us a message  {per_second:9.0f}/s  {anonymous_mib():7.1f} MiB"
    )


class Bench:
    """A store and its timer in one folder."""

    def __init__(self, folder: str) -> None:
        self.clock = VirtualClock()
        self.options = BrokerOptions(broker_name="bench", store_path_root_dir=folder)
        self.folder = folder
        self.store = FileMessageStore(StoreConfig(store_path_root_dir=folder), self.clock)
        self.store.start()
        self.postponement = Postponement(self.options, self.clock, random.Random(1))
        self.timer: TimerService
        self.start(clean=True)

    def start(self, *, clean: bool) -> None:
        self.timer = TimerService(
            self.store, TimerFiles(self.folder, self.options.timer_precision_ms), self.options, self.clock
        )
        self.timer.start(clean=clean)

    def send(self, number: int, delay_ms: int) -> None:
        properties = {"UNIQ_KEY": f"{number:032X}", "TIMER_DELIVER_MS": str(self.clock.now + delay_ms)}
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
        message = InnerMessage("T", number % 4, b"x" * 128, text, properties, 0, born_timestamp=self.clock.now)
        self.store.put_message(self.postponement.apply(message))

    def run(self) -> None:
        while self.timer.turn():
            self.store.dispatch()
        self.store.dispatch()

    def delivered(self) -> int:
        return sum(self.store.max_offset_in_queue("T", queue_id) for queue_id in range(4))


def bench(count: int, folder: str) -> None:
    """Send, note, restart, deliver."""
    this = Bench(folder)
    chance = random.Random(2)
    print(
        f"{count} messages of 128 bytes over {HOURS} hours; at the start {anonymous_mib():.1f} MiB of anonymous memory"
    )
    with measured("sent", count):
        for number in range(count):
            this.send(number, chance.randrange(10_000, HOURS * 3_600_000))
            if number % BATCH == 0:
                this.store.dispatch()
        this.store.dispatch()
    with measured("noted in log and wheel", count):
        this.run()
    with measured("restarted after a kill", count):
        this.start(clean=False)
    with measured("delivered", count):
        while this.delivered() < count:
            this.clock.now += 60_000
            this.run()
    assert this.delivered() == count, f"{this.delivered()} delivered"
    this.timer.files.close()
    this.store.close()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--dir", default=None, help="where the temporary store lies")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="bench-timer-", dir=options.dir)
    try:
        bench(options.messages, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
