"""Defines a session with the coordinator: reads, watches, changes of several nodes at once, and how long it surely holds.

Paths begin with `/` and are below the chroot of the address. Nodes have data and a version that counts its changes from
0. All methods are called, and all Deferreds and callbacks fire, on the reactor's thread; none fires within the call that
made it.

A client repeats nothing by itself, and delays nothing. While the server cannot be reached, a call fails at once with
NoAnswer; without a session, with SessionLost. A caller that still wants it calls again at CONNECTED. A request of one
session is never carried out in another.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import attrs
from twisted.internet import defer
from zope.interface import Attribute, Interface

MAX_COMMIT_BYTES = 1_000_000
"""ZooKeeper closes a connection that sends more than 2**20 - 1 bytes at once (jute.maxbuffer)."""


class CoordinationError(Exception):
    """Raised when the coordinator did not do something; the text says what to do about it."""


class Conflict(CoordinationError):
    """Raised when a node has another version than given, exists already, is missing, or has children: nothing was changed."""


class NoAnswer(CoordinationError):
    """Raised without a connection, or if it was lost before the answer: the change may have happened, may happen yet, or
    never.
    """


class SessionLost(CoordinationError):
    """Raised when the session is over; its ephemeral nodes are gone."""


class NotAllowed(CoordinationError):
    """Raised when the coordinator refuses this client (authentication, access rights) or the address's chroot is missing."""


@attrs.frozen
class Node:
    """A node as it was read. `session` is the id of an ephemeral node's session, otherwise 0.

    Sessions' ids are signed numbers of 64 bits except 0.
    """

    data: bytes
    version: int
    session: int = 0


@attrs.frozen
class Create:
    """Creates a node. Its parents must exist, and must not be ephemeral.

    With `sequential`, ten digits are added to the name; below one parent each such number is greater than all earlier ones.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@attrs.frozen
class Put:
    """Replaces the data of a node that has this version; None accepts any."""

    path: str
    data: bytes
    version: int | None


@attrs.frozen
class Delete:
    """Deletes a node without children that has this version; None accepts any."""

    path: str
    version: int | None = None


@attrs.frozen
class Check:
    """Checks that the node exists, and has this version if one is given."""

    path: str
    version: int | None = None


Operation = Create | Put | Delete | Check


class SessionEvent(enum.Enum):
    """The events of a session for listeners."""

    CONNECTED = "connected"
    """The session begins or goes on: `holds()` is true. Listeners are called first, then every watch."""
    DISCONNECTED = "disconnected"
    """The server cannot be reached; the session may go on."""
    LOST = "lost"
    """The session is over, `session_id` is 0. A new one begins by itself; CONNECTED follows, with another `session_id`."""


Changed = Callable[[], object]
"""Called when something about a watched node changed: read it again."""


class ICoordinator(Interface):
    """A client of the coordinator, with one session at a time."""

    session_id = Attribute("int: the present session's id, 0 before the first, between two, and after the stop")

    session_seconds = Attribute("float: the session's time out as the server granted it, in seconds")

    def start() -> defer.Deferred[None]:
        """Connect. Fires with the first session, after its CONNECTED.

        Fails with NotAllowed at once, with NoAnswer after the connect time. Then no session begins, and `start` may be
        called again.
        """

    def stop() -> defer.Deferred[None]:
        """End the session: its ephemeral nodes are gone when this fires, unless the server cannot be reached. Never fails."""

    def holds() -> bool:
        """Return True if the session surely holds now, so that no other client can have seen it end.

        It is True up to half of the session's time after the start of the last exchange in which the server confirmed it,
        by a monotonic clock that counts through pauses of the process. The call costs well under a microsecond.
        """

    def listen(listener: Callable[[SessionEvent], object]) -> Callable[[], None]:
        """Call `listener` with the session's events from now on; returns a function that ends that."""

    def read(path: str) -> defer.Deferred[Node | None]:
        """Return a node, None if it is missing. Fails with NoAnswer, SessionLost or NotAllowed."""

    def children(path: str) -> defer.Deferred[tuple[str, ...]]:
        """Return the names of a node's children, sorted; empty if the node is missing. Fails as `read` does.

        Reads see what this client committed before. Commits of other clients they may see late, but in order.
        """

    def watch(path: str, changed: Changed) -> Callable[[], None]:
        """Call `changed` once the watch is set, after each change of the node's data, existence or list of children,
        and after each CONNECTED: so `watch(path, read_it)` misses nothing.

        Changes in quick succession may cause one call. Returns a function that ends the watch. May be called at any time,
        also before `start`.
        """

    def commit(operations: Sequence[Operation]) -> defer.Deferred[tuple[str, ...]]:
        """Do all operations or none. Fires with the whole paths of the created nodes, with their digits, in order.

        Fails with Conflict, NoAnswer, SessionLost, NotAllowed, or CoordinationError for any other limit or
        fault of the servers. Raises ValueError for more than MAX_COMMIT_BYTES of paths
        and data, which no server accepts, and as all methods do for a malformed path.
        """
