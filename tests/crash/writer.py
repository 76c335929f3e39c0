"""A prepared process that forks a writer for every line of its input, and lets it die by SIGKILL.

In: one JSON object a line: {"root": ..., "notes": ..., "serial": ..., "seed": ..., "recovering": ..., "lines": ...,
"seconds": ..., "acknowledged": ...}. The writer opens the store, puts messages without end, and appends a line to the
file `notes` for all that is acknowledged. It dies after that many executed lines of code in storage/, or after that many seconds
if `lines` is 0. Both count from before the store's recovery, or from the moment it is open. With `acknowledged` it does not die
before a line was noted.
Out: its return code as in subprocess: -9 for SIGKILL.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from types import FrameType
from typing import Any

import twisted_mq.storage
from tests.support.store_load import Acknowledged, StoreLoad, small_config, wait_until_flushed
from twisted_mq.storage.message_store import FileMessageStore

STORAGE = os.path.dirname(twisted_mq.storage.__file__)


def die_after_lines(count: int) -> None:
    """Kill this process when so many lines of storage/ were executed, in whichever thread."""
    left = count

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if event == "call" and not frame.f_code.co_filename.startswith(STORAGE):
            return None
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def write(job: dict[str, Any], counting: int) -> None:
    """Load the store until death; a byte to the descriptor `counting` says that its time began."""

    def begin() -> None:
        os.write(counting, b".")
        if job["lines"]:
            die_after_lines(job["lines"])

    notes = os.open(job["notes"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(told: Acknowledged) -> None:
        fields = (told.topic, told.queue_id, told.queue_offset, told.first_serial, told.count)
        os.write(notes, (json.dumps(fields) + "\n").encode())

    source = random.Random(job["seed"])
    load = StoreLoad(source, job["serial"], note)
    scan = source.choice((8192, 64 << 20))
    store = FileMessageStore(small_config(job["root"], recovery_scan_bytes=scan), load.now_ms)
    if job["recovering"]:
        begin()
    store.start()
    if not job["recovering"]:
        begin()
    while True:
        result = load.step(store)
        if source.random() < 0.2:
            wait_until_flushed(store, result.end_offset)


def run_one(job: dict[str, Any]) -> int:
    """Fork a writer and end it; its exit status."""
    begun, counting = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(job, counting)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(counting)
    os.read(begun, 1)
    os.close(begun)
    if not job["lines"]:
        time.sleep(job["seconds"])
        while job["acknowledged"] and not os.path.getsize(job["notes"]) and not _has_ended(child):
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def main() -> None:
    for line in sys.stdin:
        print(run_one(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
