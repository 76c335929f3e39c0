"""A broker's process on a virtual clock: pauses before it is started again, its report, its stop."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from twisted.internet import error
from twisted.internet.interfaces import IProcessProtocol, IReactorCore
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure
from zope.interface import implementer

from twisted_mq.broker.processes.child import LONGEST_PAUSE_SECONDS, STEADY_SECONDS, STOP_SECONDS, Child, State
from twisted_mq.broker.processes.lifeline import REPORTS
from twisted_mq.broker.processes.supervisor import BrokerEnded, Supervisor, words_of_children

REPORT = b'{"port": 10911, "grpc": 0, "metrics": 5557}\n'


@attrs.define
class FakeProcess:
    """A process that ends when the test says so. `signals` are those that it got."""

    protocol: IProcessProtocol
    number: int
    signals: list[str] = attrs.Factory(list)
    gone: bool = False

    def signalProcess(self, name: str) -> None:
        if self.gone:
            raise error.ProcessExitedAlready
        self.signals.append(name)

    def end(self, status: int | None = 0, signal: int | None = None) -> None:
        ended = error.ProcessDone(0) if status == 0 else error.ProcessTerminated(status, signal)
        self.gone = True
        self.protocol.processEnded(Failure(ended))

    def report(self) -> None:
        self.protocol.childDataReceived(REPORTS, REPORT[:5])
        self.protocol.childDataReceived(REPORTS, REPORT[5:])


class Spawner:
    """Makes such processes; `processes` are all of them."""

    def __init__(self) -> None:
        self.processes: list[FakeProcess] = []
        self.fails = False

    def __call__(self, protocol: IProcessProtocol, number: int) -> FakeProcess:
        if self.fails:
            raise OSError("too many open files")
        self.processes.append(FakeProcess(protocol, number))
        return self.processes[-1]


@implementer(IReactorCore)
class Reactor(Clock):
    """A clock that runs what is called when running at once."""

    def callWhenRunning(self, call: Callable[[], object]) -> None:
        call()


def one_child() -> tuple[Child, Spawner, Clock]:
    spawner, clock = Spawner(), Clock()
    return Child("broker-0", 7, spawner, clock, lambda child: None), spawner, clock


def test_a_child_is_ready_with_its_report():
    child, spawner, _ = one_child()
    child.start()
    assert (child.state, child.ports, spawner.processes[0].number) == (State.STARTING, {}, 7)
    spawner.processes[0].report()
    assert (child.state, child.ports) == (State.READY, {"port": 10911, "grpc": 0, "metrics": 5557})


def test_pauses_double_up_to_the_longest_and_begin_anew_after_a_steady_time():
    child, spawner, clock = one_child()
    child.start()
    pauses = []
    for _ in range(7):
        spawner.processes[-1].end(1)
        assert (child.state, child.ports) == (State.WAITING, {})
        before, count = clock.seconds(), len(spawner.processes)
        while len(spawner.processes) == count:
            clock.advance(0.5)
        pauses.append(clock.seconds() - before)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]
    assert child.restarts == 7
    spawner.processes[-1].report()
    clock.advance(STEADY_SECONDS)
    spawner.processes[-1].end(None, 9)
    assert child.why == "ended by signal 9"
    clock.advance(1)
    assert child.state is State.STARTING


def test_a_broker_that_ends_before_it_was_steady_waits_longer_each_time():
    child, spawner, clock = one_child()
    child.start()
    for pause in (1, 2):
        spawner.processes[-1].report()
        clock.advance(STEADY_SECONDS - 1)
        spawner.processes[-1].end()
        clock.advance(pause - 0.1)
        assert child.state is State.WAITING
        clock.advance(0.1)
        assert child.state is State.STARTING


def test_a_process_that_cannot_be_started_is_tried_again():
    child, spawner, clock = one_child()
    spawner.fails = True
    child.start()
    assert (child.state, child.why) == (State.WAITING, "it could not be started: too many open files")
    spawner.fails = False
    clock.advance(1)
    assert child.state is State.STARTING


def test_a_stop_asks_and_waits_for_the_end():
    child, spawner, clock = one_child()
    child.start()
    done: list[object] = []
    child.stop().addCallback(done.append)
    child.stop().addCallback(done.append)
    assert (spawner.processes[0].signals, done, child.state) == (["TERM"], [], State.STOPPING)
    spawner.processes[0].end()
    assert (done, child.state, len(spawner.processes)) == ([None, None], State.STOPPED, 1)
    assert clock.getDelayedCalls() == []


def test_a_child_that_does_not_stop_is_killed():
    child, spawner, clock = one_child()
    child.start()
    child.stop()
    clock.advance(STOP_SECONDS - 1)
    assert spawner.processes[0].signals == ["TERM"]
    clock.advance(1)
    assert spawner.processes[0].signals == ["TERM", "KILL"]
    spawner.processes[0].end(None, 9)
    assert (child.state, clock.getDelayedCalls()) == (State.STOPPED, [])


def test_a_stop_during_a_pause_starts_nothing_more():
    child, spawner, clock = one_child()
    child.start()
    spawner.processes[0].end()
    done: list[object] = []
    child.stop().addCallback(done.append)
    clock.advance(100)
    assert (done, len(spawner.processes), child.state) == ([None], 1, State.STOPPED)


def test_a_stop_of_a_process_that_has_just_ended_waits_for_its_end():
    child, spawner, _ = one_child()
    child.start()
    spawner.processes[0].gone = True
    done: list[object] = []
    child.stop().addCallback(done.append)
    spawner.processes[0].end(None, 9)
    assert done == [None]


def supervised(count: int = 2) -> tuple[Supervisor, Spawner, Reactor]:
    spawner, reactor = Spawner(), Reactor()
    return Supervisor("broker", count, spawner, reactor), spawner, reactor


def test_a_supervisor_is_ready_when_all_are_and_stops_all_side_by_side():
    supervisor, spawner, _ = supervised()
    ready: list[object] = []
    supervisor.ready.addCallback(ready.append)
    supervisor.startService()
    assert [(one.name, one.state) for one in supervisor.children] == [
        ("broker-0", State.STARTING),
        ("broker-1", State.STARTING),
    ]
    spawner.processes[0].report()
    assert ready == []
    spawner.processes[1].report()
    assert ready == [None]
    stopped: list[object] = []
    supervisor.stopService().addCallback(stopped.append)
    assert [one.signals for one in spawner.processes] == [["TERM"], ["TERM"]]
    spawner.processes[1].end()
    assert stopped == []
    spawner.processes[0].end()
    assert (stopped, len(spawner.processes)) == ([None], 2)


def test_a_broker_that_ends_before_it_is_ready_fails_the_start_with_its_last_line():
    supervisor, spawner, clock = supervised()
    failed: list[Failure] = []
    supervisor.ready.addErrback(failed.append)
    supervisor.startService()
    spawner.processes[0].report()
    with capturedLogs() as events:
        spawner.processes[1].protocol.childDataReceived(2, b"mqbroker: port 10921 is in use")
        spawner.processes[1].end(1)
    (failure,) = failed
    assert failure.check(BrokerEnded)
    assert str(failure.value) == "broker broker-1 ended with status 1 (mqbroker: port 10921 is in use)"
    assert [formatEvent(event) for event in events] == [
        "broker-1: mqbroker: port 10921 is in use",
        "broker broker-1: ended with status 1 (mqbroker: port 10921 is in use); starting again in 1.0 s",
    ]
    clock.advance(1)
    assert [one.state for one in supervisor.children] == [State.READY, State.STARTING]


@pytest.mark.parametrize("place", ["logFormat=json", "metricsPromExporterHost=127.0.0.1", "metricsPromExporterPort=0"])
def test_words_of_children_override_those_given(place):
    words = words_of_children(["--set", "logFormat=text", "--port", "1"])
    assert words[:4] == ["--set", "logFormat=text", "--port", "1"]
    assert words[words.index(place) - 1] == "--set"
