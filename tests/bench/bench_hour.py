"""Loads brokers at a steady pace for an hour, with retention, flush and index at work, and tells how long answers took.

.venv/bin/python -m tests.bench.bench_hour [--seconds 3600] [--rate 500] [--write docs/measurements/hour.md]

Three brokers run beside each other and get the same load: Apache's, this project's, and this project's with the garbage
collection that Python begins with. So what else the machine does meets all. Bodies have 1 KiB, each message has a key, files of
the log have 32 MiB. Those that are full are given the time of two hours ago, and expire after one. Needs a JDK and the peers'
jars (python -m interop.peers.setup).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interop.peers.servers import COMMANDS, Cluster, our_commands
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import use_top_speed
from tests.bench.bench_curves import sends
from tests.bench.curves_page import java_version
from tests.bench.paced_load import BODY_BYTES, CONNECTIONS
from tests.soak.servers import anonymous_mib, processor_seconds

SETTINGS = {
    "mappedFileSizeCommitLog": 32 << 20,
    "mappedFileSizeConsumeQueue": 20 * 50_000,
    "maxIndexNum": 1_000_000,
    "maxHashSlotNum": 250_000,
    "fileReservedTime": 1,
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "brokerName": "bench",
    "longPollingEnable": "false",
    "osPageCacheBusyTimeOutMills": 20_000,
    "waitTimeMillsInSendQueue": 20_000,
}
"""No send is refused because it waited: how long it waited is what is measured."""
PYTHONS_OWN = (
    "import gc, sys; from twisted_mq.config import garbage;"
    " garbage.GarbageLooks.start = lambda looks: gc.enable(); garbage.GarbageLooks.look_at_all = lambda looks: None;"
    " from twisted.scripts.twistd import run; run()"
)
WARM_UP_SECONDS, AGE_EVERY_SECONDS = 10.0, 10.0
NAMES = {"apache": "Apache 5.3.3", "ours": "this broker", "python": "this broker, Python's own garbage collection"}


def with_pythons_own(home: Path, name_server_file: Path, broker_file: Path) -> tuple[list[str], list[str]]:
    """Command lines of this project's servers, the broker's without its own garbage collection."""
    name_server, broker = our_commands(home, name_server_file, broker_file)
    return name_server, [sys.executable, "-c", PYTHONS_OWN, *broker[1:]]


def started(kind: str, folder: Path) -> Cluster:
    side = Cluster(kind, folder / kind, settings=SETTINGS)
    side.start()
    with sends(side) as load:
        load.answered(WARM_UP_SECONDS)
    return side


def age(log: Path) -> None:
    """Let all files but the last two look two hours old, so that they expire."""
    old = time.time() - 7200
    for name in sorted(os.listdir(log))[:-2]:
        with contextlib.suppress(FileNotFoundError):
            os.utime(log / name, (old, old))


def measured(
    sides: Mapping[str, Cluster], seconds: float, rate: float, load_averages: list[float]
) -> dict[str, dict[str, Any]]:
    """Load all sides at the same time, and note the machine's load averages.

    Return what each load prints, with the broker's processor time, memory and files.
    """
    command = [sys.executable, "-m", "tests.bench.paced_load", "--seconds", str(seconds), "--rate", str(rate)]
    before = {kind: processor_seconds(side.broker_process) for kind, side in sides.items()}
    loads = {
        kind: subprocess.Popen([*command, str(side.broker_port)], stdout=subprocess.PIPE, text=True)
        for kind, side in sides.items()
    }
    while any(load.poll() is None for load in loads.values()):
        time.sleep(AGE_EVERY_SECONDS)
        load_averages.append(os.getloadavg()[0])
        for side in sides.values():
            age(side.store / "commitlog")
    found: dict[str, dict[str, Any]] = {}
    for kind, load in loads.items():
        printed, _ = load.communicate()
        if load.returncode:
            sys.exit(f"the load of {kind} failed, see above")
        found[kind] = json.loads(printed)
    for kind, side in sides.items():
        busy = processor_seconds(side.broker_process) - before[kind]
        log = sorted(os.listdir(side.store / "commitlog"))
        found[kind] |= {
            "us": busy / found[kind]["answers"] * 1e6,
            "mib": anonymous_mib(side.broker_process),
            "log": log,
        }
    return found


def rows(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the table's lines."""
    lines = [
        "| | answers | refused | p50 ms | p99 ms | p99.9 ms | p99.99 ms | longest ms | us a send | MiB | deleted files |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, one in found.items():
        times = " | ".join(f"{ms:.1f}" for ms in one["ms"])
        deleted = int(one["log"][0]) // SETTINGS["mappedFileSizeCommitLog"]  # type: ignore[operator]
        lines.append(
            f"| {NAMES[kind]} | {one['answers']:,} | {one['refused']:,} | {times} | {one['us']:.0f}"
            f" | {one['mib']:.0f} | {deleted} |"
        )
    return lines


def window_rows(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of p99.9 by window."""
    each: Sequence[list[list[float]]] = [one["windows"] for one in found.values()]
    count = min(map(len, each))
    lines = ["| p99.9 ms of each part | " + " | ".join(map(str, range(1, count + 1))) + " |", "|---|" + "---:|" * count]
    for kind, windows in zip(found, each, strict=True):
        lines.append(f"| {NAMES[kind]} | " + " | ".join(f"{window[2]:.1f}" for window in windows[:count]) + " |")
    return lines


def page(tables: Sequence[str], loads: Sequence[float], arguments: argparse.Namespace) -> str:
    (table, windows), low, high = tables, min(loads), max(loads)
    return f"""\
# An hour of load

<!-- not run: takes an hour -->
```shell
python -m tests.bench.bench_hour --seconds {arguments.seconds:g} --rate {arguments.rate:g} --write docs/measurements/hour.md
```

Three brokers run beside each other.
Each gets {arguments.rate:g} sends a second of {BODY_BYTES} bytes over {CONNECTIONS} connections.
Sends leave when they are due, whatever the broker does. Each message has a key, so the index is at work. The log is flushed every
500 ms. Its files have 32 MiB; full ones are given the time of two hours ago, so retention deletes them.

{table}

{windows}

Times are from a send's last byte to its answer. All three brokers and their loads share one machine and its disk, so a time that
one broker needs for itself is in the times of the others, too. `us a send` is the broker's processor time. The third broker
searches for garbage as Python does without settings: after 700 new objects, and all objects now and then. This broker's own rule
is in `twisted_mq/config/garbage.py`. The load average was between {low:.0f} and {high:.0f} meanwhile. Where it is above
the number of processors, the longest times are those of waiting for one, so compare the rows with each other only.

{platform.python_implementation()} {platform.python_version()}, Java {java_version()}, {os.cpu_count()} processors.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--write", metavar="FILE", help="write the page")
    parser.add_argument("--dir", default=None, help="where the stores are, best on a disk")
    arguments = parser.parse_args()
    if set_up_peers():
        sys.exit("the peers are missing, see above")
    use_top_speed()
    COMMANDS["python"] = with_pythons_own
    folder = Path(tempfile.mkdtemp(prefix="bench-hour-", dir=arguments.dir))
    sides: dict[str, Cluster] = {}
    load_averages: list[float] = []
    try:
        for kind in NAMES:
            sides[kind] = started(kind, folder)
        time.sleep(WARM_UP_SECONDS)
        found = measured(sides, arguments.seconds, arguments.rate, load_averages)
    finally:
        for side in sides.values():
            side.stop()
        shutil.rmtree(folder, ignore_errors=True)
    tables = ["\n".join(rows(found)), "\n".join(window_rows(found))]
    print(*tables, sep="\n\n")
    if arguments.write:
        Path(arguments.write).write_text(page(tables, load_averages, arguments))


if __name__ == "__main__":
    main()
