"""A worker's garbage is looked for among what tasks made, not among modules; what it frees it has for the next window."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

KEPT = """
import gc
from twisted_mq.spark.worker import settled
import twisted_mq.spark.source.store_reader as reader
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.stores import Store
options = read_options({"path": "."})
loaded = len(gc.get_objects())
kept = []
for _ in range(2):
    assert not list(reader.as_batches(Store("file:///nowhere", "store"), (), options.columns, options))
    kept.append(gc.get_freeze_count())
print(loaded, len(gc.get_objects()), *kept)
"""
FREED = """
import resource
from twisted_mq.spark.worker import settled

def faults():
    for _ in range(20):
        windows = [b"x" * (4 << 20) for _ in range(3)]
        del windows
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

begun = faults()
before = faults() - begun
with settled():
    faults()
    settled_at = faults()
    print(before, faults() - settled_at)
"""
SENT = """
import socket
from twisted_mq.spark.worker import settled

listener = socket.create_server(("127.0.0.1", 0))
tcp, (one, other) = socket.create_connection(listener.getsockname()), socket.socketpair()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def waits(): return tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
before = waits()
with settled():
    print(before, waits())
one.sendall(b"x")
peer, _ = listener.accept()
tcp.sendall(b"y")
print(len(other.recv(9)), len(peer.recv(9)), int(udp.fileno() > 0))
"""


def told(script: str) -> list[int]:
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return list(map(int, run.stdout.split()))


def test_modules_are_kept_out_of_garbage_collection_once() -> None:
    loaded, left, *kept = told(KEPT)
    assert kept[0] == kept[1] >= loaded > 100 * left


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told what to keep")
def test_freed_windows_are_not_cleared_anew_by_the_system() -> None:
    before, after = told(FREED)
    assert before > 100 + 10 * after


def test_a_tcp_connection_sends_at_once_and_other_sockets_stay_as_they_are() -> None:
    before, after, *received = told(SENT)
    assert not before
    assert after
    assert received == [1, 1, 1]
