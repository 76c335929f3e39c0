"""Delayed, timed, transactional and filtered messages: this project's broker beside Apache's, under Apache's Java client.

.venv/bin/python -m tests.bench.bench_features [--seconds 6] [--threads 32] [--rounds 1] [--only delayed,timed]

Sends and deliveries a second, and the broker's processor time (user and system) for each message sent, delivery
included. "plain" has no feature: the others cost what they cost on top of it. Needs a JDK and the peers' jars
(python -m interop.peers.setup).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from interop.peers.servers import COMMANDS, Cluster, ask
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import java_command, use_top_speed
from tests.bench.bench_pair import compiled

FEATURES = ("plain", "delayed", "timed", "transactional", "filtered")
FIGURES = ("sends a second", "deliveries a second", "broker us a message")
WARM_UP_SECONDS = 6
"""For each feature before any is measured: a virtual machine needs a while to reach its speed."""
Row = dict[str, float]


class BenchCluster(Cluster):
    """Checks of transactions at Apache's own pace, and commit log files of Apache's size divided by four."""

    def _broker_settings(self) -> dict[str, object]:
        settings = {key: value for key, value in super()._broker_settings().items() if "transaction" not in key}
        return settings | {"mappedFileSizeCommitLog": 256 << 20}

    @property
    def broker_pid(self) -> int:
        assert self._broker is not None
        return self._broker.child.pid


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(cluster: BenchCluster, classes: Path, feature: str, seconds: int, threads: int) -> Row:
    """Metrics of one feature."""
    topic = f"Bench_{feature}"
    fields = {
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    ask(cluster.broker_port, 17, fields)
    cluster.wait_route(topic)
    home = cluster.directory / "load"
    arguments = (cluster.name_server, feature, topic, str(seconds), str(threads))
    command = java_command(home, "512m", "FeatureLoad", *arguments, classes=classes)
    before = cpu_seconds(cluster.broker_pid)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 300)
    spent = cpu_seconds(cluster.broker_pid) - before
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures["failed"] or figures["delivered"] < figures["wanted"]:
        raise SystemExit(f"{cluster.kind} {feature}: {figures}\n{done.stderr[-2000:]}")
    sent_in_all = figures["sent"] * (1 + 2 / seconds)
    values = (figures["sent_per_second"], figures["delivered_per_second"], spent * 1e6 / sent_in_all)
    return dict(zip(FIGURES, values, strict=True))


def rounds(kind: str, classes: Path, features: list[str], arguments: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """Each feature's figures from one start of a broker with an empty store."""
    folder = Path(tempfile.mkdtemp(prefix=f"bench-features-{kind}-", dir=arguments.dir))
    cluster = BenchCluster(kind, folder / "cluster")
    try:
        cluster.start()
        for feature in features:
            load(cluster, classes, feature, WARM_UP_SECONDS, arguments.threads)
        for feature in features:
            yield feature, load(cluster, classes, feature, arguments.seconds, arguments.threads)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def print_table(results: dict[tuple[str, str], list[Row]], features: list[str]) -> None:
    print(f"{'':36}{'Apache':>12}{'ours':>12}{'ratio':>8}")
    for feature in features:
        for figure in FIGURES:
            theirs, ours = (
                statistics.median(row[figure] for row in results[kind, feature]) for kind in ("apache", "ours")
            )
            print(f"{feature + ', ' + figure:36}{theirs:12,.1f}{ours:12,.1f}{ours / theirs:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(FEATURES))
    parser.add_argument("--sides", type=lambda text: text.split(","), default=list(COMMANDS))
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args()
    set_up_peers()
    use_top_speed()
    results: dict[tuple[str, str], list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        classes = compiled(Path(folder))
        for _ in range(arguments.rounds):
            for kind in arguments.sides:
                for feature, row in rounds(kind, classes, arguments.only, arguments):
                    results.setdefault((kind, feature), []).append(row)
                    print(f"{kind:8}{feature:16}" + "".join(f"{row[name]:12,.1f}" for name in FIGURES), flush=True)
    if set(arguments.sides) == set(COMMANDS):
        print_table(results, arguments.only)


if __name__ == "__main__":
    main()
