"""Measures how a broker's processor time a message grows with what it has: beside Apache's, and as a picture.

.venv/bin/python -m tests.bench.bench_curves [topics connections bodies log consumers] [--rounds 3] [--seconds 4]
                                             [--write docs/measurements/curves.md]

Each curve changes one quantity: topics that take turns, connections of which 64 at a time have a request, bytes of a body,
bytes in the log when the broker starts (sparse), consumers that pull. A broker of each side is warmed up, then each point
is measured for some seconds. Sends have JSON headers and 128 bytes, 64 are in flight. Values are medians over rounds, in
which the sides take turns. Processor time depends less on what else runs than rates do. Needs a JDK and the peers' jars
(python -m interop.peers.setup).
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from interop.peers.servers import COMMANDS, Cluster, ask
from interop.peers.setup import main as set_up_peers
from interop.peers.toolchain import use_top_speed
from tests.bench.bench_broker import pull_fields, send_fields
from tests.bench.bench_starts import make_store
from tests.bench.curves_page import Curve, write_page
from tests.bench.frame_load import FrameLoad
from tests.soak.servers import processor_seconds
from twisted_mq.protocol.bodies import CreateTopicListRequestBody, TopicConfig, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.system_calls import raise_descriptor_limit

WARM_UP_SECONDS, SETTLE_SECONDS = 10.0, 1.0
SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 30,
    "maxMessageSize": 4 << 20,
    "brokerName": "bench",
    "longPollingEnable": "false",
    "waitTimeMillsInSendQueue": 20_000,
    "osPageCacheBusyTimeOutMills": 20_000,
}
"""No send is refused because new files took long, as the first sends to 10,000 topics."""
OPAQUE, BORN = 1_000_000_000, "1700000000000"
KEY = "K" * 8
PROPERTIES = f"UNIQ_KEY\x01C0000202201A4E0E2F2A66E0{KEY}\x02WAIT\x01true\x02"
"""The number takes the place of KEY in a message's id."""
AT_ONCE = 1000
"""Topics that one request makes."""
STORED = 2_000
"""Messages of each queue that consumers read."""
A_PULL = 32
OPEN_FILES = 655_350
"""The limit that RocketMQ's start scripts ask for (bin/os.sh), and the units below deploy/."""


def send_frames(topics: Sequence[str], queues: int = 4, body_bytes: int = 128) -> Callable[[int], bytes]:
    """Return what makes the send of a number: topics, then queues, take turns."""
    count = len(topics) * queues
    forms: dict[int, list[bytes]] = {}

    def form(place: int) -> list[bytes]:
        topic, queue = topics[place % len(topics)], place // len(topics)
        fields = send_fields(0, b=topic, e=str(queue), g=BORN, i=PROPERTIES)
        frame = encode_frame(RemotingCommand(310, OPAQUE, 0, "JAVA", 479, None, b"x" * body_bytes, ext_fields=fields))
        before, after = frame.split(KEY.encode())
        middle, end = after.split(str(OPAQUE).encode())
        return [before, middle, end]

    def frame(number: int) -> bytes:
        place = number % count
        known = forms.get(place)
        if known is None:
            known = forms[place] = form(place)
        return b"%b%08X%b%d%b" % (known[0], number, known[1], OPAQUE + number, known[2])

    return frame


def pull_frames(topic: str, queues: int) -> Callable[[int], bytes]:
    """Return what makes the pull of a number; consumers of one queue each take turns."""

    def frame(number: int) -> bytes:
        offset = number // queues * A_PULL % (STORED - A_PULL)
        fields = pull_fields(number % queues, offset, topic=topic, sysFlag="4")
        return encode_frame(RemotingCommand(11, OPAQUE + number, 0, "JAVA", 479, None, b"", ext_fields=fields))

    return frame


def make_topics(side: Cluster, names: Sequence[str], queues: int) -> None:
    for begin in range(0, len(names), AT_ONCE):
        configs = [
            TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
            for name in names[begin : begin + AT_ONCE]
        ]
        body = encode_body(CreateTopicListRequestBody(configs))
        ask(side.broker_port, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body, seconds=60)


def sends(side: Cluster, **more: int) -> FrameLoad:
    return FrameLoad(side.broker_port, send_frames(["Bench"]), **more)


def of_topics(side: Cluster, count: int) -> FrameLoad:
    names = [f"Bench{number}" for number in range(count)]
    make_topics(side, names, queues=1)
    return FrameLoad(side.broker_port, send_frames(names, queues=1), kinds=count)


def of_bodies(side: Cluster, size: int) -> FrameLoad:
    return FrameLoad(side.broker_port, send_frames(["Bench"], body_bytes=size), in_flight=64 if size < 1 << 16 else 8)


def of_consumers(side: Cluster, count: int) -> FrameLoad:
    topic = f"Read{count}"
    make_topics(side, [topic], count)
    with FrameLoad(side.broker_port, send_frames([topic], count)) as load:
        load.answered(0, STORED * count)
    return FrameLoad(side.broker_port, pull_frames(topic, count), count, count)


@attrs.frozen
class Axis:
    """A curve's values, and what makes the load of one. With `log_files` values are those of the log at the start."""

    curve: Curve
    load: Callable[[Cluster, int], FrameLoad]
    messages: int = 1
    """In each answer."""
    log_files: bool = False


AXES = {
    "topics": Axis(Curve("topics", "topics that take turns", (1, 10, 100, 1_000, 10_000)), of_topics),
    "connections": Axis(
        Curve("connections", "connections, 64 sends in flight", (1, 10, 100, 1_000, 5_000)),
        lambda side, count: sends(side, connections=count),
    ),
    "bodies": Axis(
        Curve("bodies", "bytes of a body", (128, 1 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20)), of_bodies
    ),
    "log": Axis(Curve("log", "GiB in the log (sparse)", (0, 1, 10, 100)), lambda side, _: sends(side), log_files=True),
    "consumers": Axis(Curve("consumers", "consumers that pull 32 messages", (1, 4, 16, 64)), of_consumers, A_PULL),
}


@attrs.define(eq=False)
class Measuring:
    """Measures points, each for some seconds, with stores below a folder."""

    folder: Path
    seconds: float
    found: dict[tuple[str, str, int], list[float]] = attrs.field(factory=lambda: defaultdict(list))
    """Microseconds of each round by axis, side and value."""

    def run(self, name: str, kind: str) -> None:
        """Measure a side's values of one axis."""
        axis = AXES[name]
        for values in [[value] for value in axis.curve.values] if axis.log_files else [axis.curve.values]:
            side = Cluster(kind, self.folder / "side", settings=SETTINGS)
            try:
                self._start(side, values[0] if axis.log_files else 0)
                for value in values:
                    us = self._point(side, axis, value)
                    print(f"{name:12} {value:>10,} {kind:8} {us:8.2f} us", file=sys.stderr, flush=True)
                    self.found[name, kind, value].append(us)
            finally:
                side.stop()
                shutil.rmtree(side.directory, ignore_errors=True)

    def _start(self, side: Cluster, log_files: int) -> None:
        if log_files:
            store = side.directory / "store"
            store.mkdir(parents=True)
            make_store(StoreConfig(store_path_root_dir=str(store)), topics=100, queues=4, files=log_files)
        side.start()
        with sends(side) as load:
            load.answered(WARM_UP_SECONDS)

    def _point(self, side: Cluster, axis: Axis, value: int) -> float:
        """Microseconds of processor time a message."""
        process = side.broker_process
        with axis.load(side, value) as load:
            load.answered(max(SETTLE_SECONDS, self.seconds / 2), least=2 * load.kinds)
            before = processor_seconds(process)
            count = load.answered(self.seconds)
            return (processor_seconds(process) - before) / (count * axis.messages) * 1e6


def allow_open_files() -> None:
    """Raise the limit of descriptors to OPEN_FILES, or as far as this process may."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    except (OSError, ValueError):
        raise_descriptor_limit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("axes", nargs="*", default=list(AXES), help=" ".join(AXES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--write", metavar="FILE", help="write the page, and its picture beside it")
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    arguments = parser.parse_args()
    if set_up_peers():
        sys.exit("the peers are missing, see above")
    use_top_speed()
    allow_open_files()
    logging.disable(logging.WARNING)
    folder = Path(tempfile.mkdtemp(prefix="bench-curves-", dir=arguments.dir))
    try:
        measuring = Measuring(folder, arguments.seconds)
        for number in range(arguments.rounds):
            for name in arguments.axes:
                for kind in list(COMMANDS)[:: 1 if number % 2 == 0 else -1]:
                    measuring.run(name, kind)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    medians = {key: statistics.median(values) for key, values in measuring.found.items()}
    write_page([AXES[name].curve for name in arguments.axes], medians, arguments)


if __name__ == "__main__":
    main()
