"""Runs one session with ZooKeeper from its beginning to its end: one client of kazoo, in threads of its own.

`tell` passes on what kazoo reports in its threads; any thread can ask how long the session surely holds. A client
of kazoo would begin a second session by itself, so it is stopped before anything can be asked in that.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import attrs
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.handlers.utils import AsyncResult
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import KazooState
from kazoo.security import CREATOR_ALL_ACL

from twisted_mq.coordination.interfaces import NoAnswer, SessionLost
from twisted_mq.coordination.settings import CoordinatorSettings

PROBES = 6
"""The number of confirming exchanges in a session's time."""
MOST_ASKED = 64
"""The most requests that the server has not answered yet. More requests wait here, so that the exchange that confirms the
session waits only for these, however much is asked at once by a client that follows thousands of nodes.
"""
KEPT_WARNINGS = 3
NEVER = float("-inf")
RETRIES = {"max_tries": -1, "delay": 0.05, "backoff": 2}
"""Kazoo's pauses between tries to connect; at most a sixth of the session's time."""


@attrs.frozen
class Confirmed:
    """The server answers. `problem` says why the chroot cannot be used."""

    session_id: int
    seconds: float
    problem: KazooException | None


@attrs.frozen
class Unreachable:
    """The server does not answer."""


@attrs.frozen
class Over:
    """The session is over."""


Happened = Confirmed | Unreachable | Over


class Ask(Protocol):
    """A call of kazoo that does not block."""

    def __call__(self, client: KazooClient) -> AsyncResult:
        """Ask the server."""


Answered = Callable[[AsyncResult], object]


class Handler(Protocol):
    """Makes kazoo's threads, events and sockets: those of the system, or others that a simulation controls."""

    def sleep_func(self, seconds: float) -> None: ...

    def event_object(self) -> Any: ...

    def spawn(self, func: Callable[..., object], *args: Any) -> Any: ...


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """A connection of kazoo, which does not publish the session time that the server granted."""

    granted_seconds = 0.0

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):
            self.granted_seconds = answer[0].time_out / 1000
        return answer


class _Warnings(logging.Handler):
    """Keeps kazoo's last different warnings (it warns at each try to connect) for `problem`; errors go to the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.texts = [*(other for other in self.texts if other != text), text][-KEPT_WARNINGS:]
        if record.levelno >= logging.ERROR:
            logging.getLogger(__name__).handle(record)


class ZooKeeperSession:
    """A session, created and kept by `run` in a thread of its own. `monotonic` is the lease's clock."""

    def __init__(
        self,
        settings: CoordinatorSettings,
        monotonic: Callable[[], float],
        tell: Callable[[Happened], object],
        new_handler: Callable[[], Handler] = SequentialThreadingHandler,
    ) -> None:
        self._monotonic = monotonic
        self._tell = tell
        self.holds_until = NEVER
        """A time of `monotonic` before which no other client can have seen the session end; see ICoordinator.holds."""
        self._seconds = settings.session_seconds
        self._warnings = _Warnings()
        handler = new_handler()
        self._client = _client(settings, self._warnings, handler)
        self._client.add_listener(self._state)
        self._wake = handler.event_object()
        self._lock = threading.Lock()
        """Held while something is asked or reported: both depend on the state that they find."""
        self._waiting: deque[tuple[Ask, Answered]] = deque()
        self._asked = 0
        self._link = 0
        """Counts connections: an answer of an earlier one makes no room."""
        self._linked = False
        self._answers = False
        self._over = False
        self._asked_at: float | None = None

    @property
    def problem(self) -> str:
        """The last problem, in kazoo's words; empty without one."""
        return "; ".join(self._warnings.texts)

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        """The id with which another client can go on with the session; None without a connection."""
        identity: tuple[int, bytes] | None = self._client.client_id
        return identity

    def ask(self, ask: Ask, answered: Answered) -> None:
        """Ask the server. `answered` is called in a thread of kazoo's; not at all if the connection is lost meanwhile.

        Raises NoAnswer or SessionLost.
        """
        with self._lock:
            if self._over:
                raise SessionLost("the session has ended")
            if not self._linked:
                raise NoAnswer("no connection to ZooKeeper")
            self._waiting.append((ask, answered))
            self._ask_on()

    def _ask_on(self) -> None:
        """Send as many requests as may be pending, in their order. The lock is held."""
        while self._waiting and self._asked < MOST_ASKED:
            ask, answered = self._waiting.popleft()
            self._asked += 1
            ask(self._client).rawlink(functools.partial(self._make_room, self._link, answered))

    def _make_room(self, link: int, answered: Answered, result: AsyncResult) -> None:
        """Make room, on kazoo's completion thread."""
        with self._lock:
            if link == self._link:
                self._asked -= 1
                self._ask_on()
        answered(result)

    def run(self) -> None:
        """Connect, and confirm the session repeatedly; return after its end."""
        self._client.start_async()
        while not self._over:
            self._wake.wait(self._seconds / PROBES)
            self._wake.clear()
            self._probe()
        self._client.stop()
        self._client.close()

    def end(self) -> None:
        """Make `run` end the session and return. Can be called from any thread, and never blocks."""
        self._over = True
        self.holds_until = NEVER
        self._wake.set()

    def confirm_again(self) -> None:
        """Report Confirmed once more, by another exchange."""
        with self._lock:
            self._answers = False
        self._wake.set()

    def _state(self, state: str) -> None:
        """Handle a state, on kazoo's connection thread, which goes on after this returns."""
        with self._lock:
            self._linked = state == KazooState.CONNECTED
            self._link += 1
            self._asked = 0
            self._waiting.clear()
            self._asked_at = None
            if state == KazooState.LOST:
                self.end()
                self._tell(Over())
            elif state == KazooState.SUSPENDED:
                self._unreachable()
            else:
                self._seconds = self._client._connection.granted_seconds
        self._wake.set()

    def _unreachable(self) -> None:
        self._waiting.clear()
        if self._answers:
            self._answers = False
            self._tell(Unreachable())

    def _probe(self) -> None:
        """Start an exchange, only one at a time: with several pending, kazoo would not notice that none is answered."""
        now = self._monotonic()
        with self._lock:
            if self._over or not self._linked:
                return
            if self._asked_at is not None:
                if now - self._asked_at > self._seconds / 3:
                    self._unreachable()
                return
            self._asked_at = now
            # a server that is cut off from its quorum still answers reads, but no sync
            synced = self._client.sync_async("/")
            listed = self._client.get_children_async("/")
        listed.rawlink(lambda _: self._probed(now, synced, listed))

    def _probed(self, started: float, synced: AsyncResult, listed: AsyncResult) -> None:
        """Handle the answer, on kazoo's completion thread. The sync was answered before."""
        with self._lock:
            if self._asked_at != started or not self._linked:
                return
            self._asked_at = None
            if not synced.successful():
                return
            self.holds_until = started + self._seconds / 2
            identity = self.client_id
            if not self._answers and identity is not None:
                self._answers = True
                self._tell(Confirmed(identity[0], self._seconds, listed.exception))


def _client(settings: CoordinatorSettings, warnings: logging.Handler, handler: Handler) -> KazooClient:
    logger = logging.Logger("kazoo", logging.WARNING)
    logger.addHandler(warnings)
    client = KazooClient(
        ",".join(settings.address.servers) + settings.address.chroot,
        timeout=settings.session_seconds,
        handler=handler,
        default_acl=CREATOR_ALL_ACL if settings.auth else None,
        auth_data=[("digest", settings.auth)] if settings.auth else None,
        connection_retry={
            **RETRIES,
            "max_delay": settings.session_seconds / PROBES,
            "sleep_func": handler.sleep_func,
        },
        logger=logger,
        use_ssl=bool(settings.ca_file),
        ca=settings.ca_file or None,
        certfile=settings.certificate_file or None,
        keyfile=settings.key_file or None,
        check_hostname=True,
    )
    client._connection = _Connection(client, client._connection.retry_sleeper, logger=logger)
    return client
