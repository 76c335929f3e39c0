"""Measures how fast `mq store` reads a store: verify, dump with a filter, sizes, the plans of rebuild and repair.

.venv/bin/python -m tests.bench.bench_store_tools [--megabytes 512] [--body 1024] [--dir /dev/shm]

On a warm cache. Beside it what the CRC of the bodies alone costs, which verify cannot go below in one process.
"""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Callable

from tests.support.bench_stores import (
    HEADLINE,
    copy_limit,
    fill,
    messages,
    open_store,
    row,
    seconds_of,
    temporary_folder,
)
from twisted_mq.storage.columns.walk import LogFiles, walk_log
from twisted_mq.storage.tools.filters import RecordFilter, SelectedMessages
from twisted_mq.storage.tools.rebuild import rebuild
from twisted_mq.storage.tools.repair import plan_repair
from twisted_mq.storage.tools.sizes import measure
from twisted_mq.storage.tools.verify import verify

GOAL_MB = 500
"""Verify of bodies of 1 KiB, MB/s."""
_ROUNDS = 3


def build(folder: str, megabytes: int, body_bytes: int, *, index: bool) -> tuple[int, int]:
    """Fill a store; returns how many messages, and how many bytes of log."""
    count = megabytes * 1_000_000 // (body_bytes + 180)
    store = open_store(folder, message_index_enable=index)
    end = fill(store, list(messages(count, 4, body_bytes)))
    store.close()
    return count, end


def crc_alone(count: int, body_bytes: int) -> None:
    """The CRC of as many bodies, without anything around it."""
    body = memoryview(os.urandom(body_bytes))
    for _ in range(count):
        zlib.crc32(body)


def walk(folder: str) -> None:
    """Prove every record's head, look at no body."""
    for _ in walk_log(LogFiles(folder), check_bodies=False):
        pass


def cases(folder: str) -> dict[str, Callable[[], object]]:
    """The measured commands."""
    return {
        "walk, heads only": lambda: walk(folder),
        "verify": lambda: verify(folder),
        "dump, a topic that has no message": lambda: list(SelectedMessages(LogFiles(folder), RecordFilter(["None"]))),
        "dump, a key that no message has": lambda: list(
            SelectedMessages(LogFiles(folder), RecordFilter(keys=["none"]))
        ),
        "sizes": lambda: measure(folder),
        "rebuild, the plan": lambda: rebuild(folder),
        "repair, the plan for a sound store": lambda: plan_repair(folder),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args()
    print(HEADLINE)
    for index in (False, True):
        with temporary_folder(arguments.dir) as folder:
            count, size = build(folder, arguments.megabytes, arguments.body, index=index)
            print(f"-- {count:,} messages of {arguments.body} B, {'with' if index else 'without'} key index")
            for name, call in cases(folder).items():
                best = min(seconds_of(call) for _ in range(_ROUNDS))
                goal = f"goal {GOAL_MB}" if name == "verify" else ""
                print(row(name, best, count, size, goal), flush=True)
    best = min(seconds_of(lambda: crc_alone(count, arguments.body)) for _ in range(_ROUNDS))
    print("-- limits")
    print(row("CRC-32 of the bodies alone", best, count, count * arguments.body))
    print(f"{'bare memory copy, 1 KiB pieces':44} {'':10} {'':14} {copy_limit(1024):10,.0f}")


if __name__ == "__main__":
    main()
