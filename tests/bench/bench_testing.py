"""Measures the cost of a broker in a test: the time until one is up, sent to and down again, and the memory of the process.

Twisted loads pyOpenSSL where that is installed, for the extra `tls`; it is measured with and without.

python -m tests.bench.bench_testing
"""

from __future__ import annotations

import statistics
import subprocess
import sys

RUNS = 7

FRESH = """
import sys, time

def mib(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(name))

if sys.argv[2] == "without":
    sys.modules["OpenSSL"] = None
before = mib("VmRSS"), mib("RssAnon")
began = time.perf_counter()
from twisted_mq.testing import EmbeddedServer
loaded = time.perf_counter()
server = EmbeddedServer(store=sys.argv[1]).start()
up = time.perf_counter()
from twisted_mq.client import Message
server.send(Message(server.new_topic(), b"x" * 128))
sent = time.perf_counter()
after = mib("VmRSS"), mib("RssAnon")
server.stop()
again = time.perf_counter()
second = EmbeddedServer(store=sys.argv[1]).start()
print(loaded - began, up - loaded, sent - up, time.perf_counter() - again, after[0] - before[0], after[1] - before[1])
second.stop()
"""

VIRTUAL = """
import time
from twisted_mq.client import Message, Producer
from twisted_mq.testing import VirtualCluster

began = time.perf_counter()
with VirtualCluster() as cluster:
    producer = Producer(cluster.reactor, "shop", cluster.name_server)
    cluster.run(producer.start())
    message = Message("Orders", b"x")
    message.delay_time_level = 18
    cluster.run(producer.send(message))
    up = time.perf_counter()
    cluster.advance(7210)
    passed = time.perf_counter()
    assert len(cluster.messages("Orders")) == 1
print(up - began, passed - up)
"""


def medians(program: str, *arguments: str) -> list[float]:
    rows = []
    for _ in range(RUNS):
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        rows.append([float(word) for word in done.stdout.split()])
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def main() -> None:
    for store in ("file", "memory"):
        for tls in ("with", "without"):
            load, up, sent, again, resident, anonymous = medians(FRESH, store, tls)
            print(
                f"{store}, {tls} pyOpenSSL: modules {load * 1000:.0f} ms, first server {up * 1000:.0f} ms, "
                f"topic and send {sent * 1000:.0f} ms, next server {again * 1000:.0f} ms, "
                f"resident {resident:.1f} MiB, anonymous {anonymous:.1f} MiB"
            )
    up, passed = medians(VIRTUAL)
    print(f"virtual: up and sent {up * 1000:.0f} ms, two hours {passed * 1000:.0f} ms")


if __name__ == "__main__":
    main()
