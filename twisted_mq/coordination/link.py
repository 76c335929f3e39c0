"""Connects a client in memory to its ensemble, with the faults that tests inject."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from twisted.internet import interfaces

Deliver = Callable[[], object]


class Pipe:
    """Delivers in the order of sending, never within the call that sends. `delay` is in seconds."""

    def __init__(self, clock: interfaces.IReactorTime) -> None:
        self.delay = 0.0
        self._clock = clock
        self._waiting: deque[Deliver] = deque()
        self._timers: deque[interfaces.IDelayedCall] = deque()
        self._due = 0
        self._held = False

    def send(self, deliver: Deliver) -> None:
        """Call it after `delay`, or when everything sent before has arrived."""
        self._waiting.append(deliver)
        self._timers.append(self._clock.callLater(self.delay, self._arrive))

    def drop(self) -> None:
        """Lose everything that is on its way."""
        for timer in self._timers:
            if timer.active():
                timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._due = 0

    def hold(self) -> None:
        """Deliver nothing until `release`."""
        self._held = True

    def release(self) -> None:
        """Deliver what is due now, in order."""
        self._held = False
        self._deliver()

    def _arrive(self) -> None:
        self._due += 1
        while self._timers and not self._timers[0].active():
            self._timers.popleft()
        self._deliver()

    def _deliver(self) -> None:
        while self._due and not self._held:
            self._due -= 1
            self._waiting.popleft()()


class Link:
    """The link of a client: requests go up, answers and events come down in one stream; events may have a delay of their own.

    While it is cut, nothing gets through. `broken` is called when the client can notice it.
    """

    def __init__(
        self, server: interfaces.IReactorTime, client: interfaces.IReactorTime, broken: Callable[[], object]
    ) -> None:
        self.requests = Pipe(server)
        self.answers = Pipe(client)
        self.events = Pipe(client)
        self.is_cut = False
        self.answer_is_dropped = False
        self._broken = broken
        self._paused = False
        self._after_pause: list[Deliver] = []

    def up(self, deliver: Deliver) -> None:
        """Send to the server."""
        self._send(self.requests, deliver)

    def down(self, deliver: Deliver) -> None:
        """Send to the client."""
        self._send(self.answers, deliver)

    def event(self, deliver: Deliver) -> None:
        """Send an event to the client."""
        self.down(lambda: self.events.send(deliver))

    def close(self) -> None:
        """Lose everything that is on its way in both directions."""
        for pipe in (self.requests, self.answers, self.events):
            pipe.drop()

    def cut(self, *, silently: bool = False) -> None:
        """Fault: nothing gets through. The client notices at once, or if `silently` only by its unanswered pings."""
        self.is_cut = True
        if not silently:
            self._broken()

    def heal(self) -> None:
        """End `cut`. What was sent meanwhile is lost; the client connects at its next try."""
        self.is_cut = False

    def drop_answer(self) -> None:
        """Fault: the next commit is done, and the connection breaks before its answer."""
        self.answer_is_dropped = True

    def run(self, work: Deliver) -> None:
        """Run the work of a client's timer: now, or after the pause."""
        if self._paused:
            self._after_pause.append(work)
        else:
            work()

    def pause(self) -> None:
        """Fault: the client's process is paused. Messages to it wait, and its session may end."""
        self._paused = True
        for pipe in (self.answers, self.events):
            pipe.hold()

    def resume(self) -> None:
        """End `pause`."""
        self._paused = False
        due, self._after_pause = self._after_pause, []
        for work in due:
            work()
        for pipe in (self.answers, self.events):
            pipe.release()

    def _send(self, pipe: Pipe, deliver: Deliver) -> None:
        def arrive() -> None:
            if not self.is_cut:
                deliver()

        pipe.send(arrive)
