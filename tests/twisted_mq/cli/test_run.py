"""Coroutines under a real reactor; each in a process of its own, because a reactor runs once."""

import signal
import subprocess
import sys

SCRIPT = """
import sys
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted_mq.cli.run import Interrupted, run_under_reactor

async def answer(reactor):
    await deferLater(reactor, 0)
    return 42

async def fail(reactor):
    await deferLater(reactor, 0)
    raise ValueError("no")

async def fail_among_several(reactor):
    await gatherResults([deferLater(reactor, 0), Deferred.fromCoroutine(fail(reactor))], consumeErrors=True)

async def fail_at_once(reactor):
    raise ValueError("at once")

async def wait(reactor):
    print("waiting", flush=True)
    try:
        await Deferred()
    finally:
        await deferLater(reactor, 0.01)
        print("closed", flush=True)

try:
    print(run_under_reactor(globals()[sys.argv[1]]))
except ValueError as error:
    print("failed:", error)
except Interrupted:
    print("interrupted")
"""


def start(name: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, name], stdout=subprocess.PIPE, text=True)


def test_the_result_comes_back():
    assert start("answer").communicate(timeout=60)[0] == "42\n"


def test_an_error_is_raised():
    assert start("fail").communicate(timeout=60)[0] == "failed: no\n"
    assert start("fail_among_several").communicate(timeout=60)[0] == "failed: no\n"
    assert start("fail_at_once").communicate(timeout=60)[0] == "failed: at once\n"


def test_signals_let_the_coroutine_close_what_it_has_open():
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start("wait")
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(number)
        assert process.communicate(timeout=60)[0] == "closed\ninterrupted\n"
