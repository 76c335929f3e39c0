"""One session with the coordinator: reads, watches, changes of several nodes at once, and how long the session surely holds.

Paths begin with `/` and are below the chroot of the address. Nodes have data and a version that counts its changes from 0.
All methods are called, and all Deferreds and callbacks fire, on the reactor's thread; none fires within the call that made it.

A client does nothing again by itself, and nothing later: what is asked while the server can't be reached fails at once with
NoAnswer, without a session with SessionLost. Who still wants it asks again when CONNECTED is told. What is asked in one
session is never done in another.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import attrs
from twisted.internet import defer
from zope.interface import Attribute, Interface

MAX_COMMIT_BYTES = 1_000_000
"""ZooKeeper closes the connection of who sends more than 2**20 - 1 bytes at once (jute.maxbuffer)."""


class CoordinationError(Exception):
    """Something the coordinator did not do; the text says what to do about it."""


class Conflict(CoordinationError):
    """A node has another version than was given, is there already, is missing, or has children: nothing was changed."""


class NoAnswer(CoordinationError):
    """There is no connection, or it was lost before the answer: the change may have happened, may happen yet, or never."""


class SessionLost(CoordinationError):
    """The session is over, its ephemeral nodes are gone."""


class NotAllowed(CoordinationError):
    """The coordinator refuses this client (authentication, access rights) or the address has a chroot that is missing."""


@attrs.frozen
class Node:
    """One node as it was read. `session` is the id of the session that an ephemeral node lives as long as, otherwise 0.

    Sessions' ids are any signed numbers of 64 bits but 0.
    """

    data: bytes
    version: int
    session: int = 0


@attrs.frozen
class Create:
    """A new node. Parents must be there, and not ephemeral.

    With `sequential` ten digits are added to the name; below one parent each such number is above all that were given before.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@attrs.frozen
class Put:
    """Other data for a node that has this version; None takes any."""

    path: str
    data: bytes
    version: int | None


@attrs.frozen
class Delete:
    """Remove a node without children that has this version; None takes any."""

    path: str
    version: int | None = None


@attrs.frozen
class Check:
    """The node is there, and has this version where one is given."""

    path: str
    version: int | None = None


Operation = Create | Put | Delete | Check


class SessionEvent(enum.Enum):
    """What listeners of a session are told."""

    CONNECTED = "connected"
    """The session begins or goes on: `holds()` is true. Listeners are told first, then every watch."""
    DISCONNECTED = "disconnected"
    """The server can't be reached; the session may go on."""
    LOST = "lost"
    """The session is over, `session_id` is 0. A new one begins by itself; CONNECTED follows, with another `session_id`."""


Changed = Callable[[], object]
"""Something about a watched node changed; read again."""


class ICoordinator(Interface):
    """One client of the coordinator, with one session at a time."""

    session_id = Attribute("int: the present session's id, 0 before the first, between two, and after the stop")

    session_seconds = Attribute("float: the session's time out as the server granted it, in seconds")

    def start() -> defer.Deferred[None]:
        """Connect. Fires with the first session, after its CONNECTED.

        Fails with NotAllowed at once, with NoAnswer after the connect time; no session begins then, and `start` may be
        called again.
        """

    def stop() -> defer.Deferred[None]:
        """End the session: its ephemeral nodes are gone when this fires, unless the server can't be reached. Never fails."""

    def holds() -> bool:
        """Whether the session surely holds now: nobody can have seen it end.

        True up to half of the session's time after the start of the last exchange in which the server confirmed it, by
        a monotonic clock that counts through pauses of the process. Costs well under a microsecond.
        """

    def listen(listener: Callable[[SessionEvent], object]) -> Callable[[], None]:
        """Tell `listener` about the session from now on; returns what ends that."""

    def read(path: str) -> defer.Deferred[Node | None]:
        """A node, None where it is missing. Fails with NoAnswer, SessionLost or NotAllowed."""

    def children(path: str) -> defer.Deferred[tuple[str, ...]]:
        """The names of a node's children, sorted; none where the node is missing. Fails as `read` does.

        Reads see what this client committed before; what others commit they may see late, but in order.
        """

    def watch(path: str, changed: Changed) -> Callable[[], None]:
        """Call `changed` once the watch stands, after each change of the node's data, existence or list of children,
        and after each CONNECTED: so `watch(path, read_it)` misses nothing.

        Changes in quick succession may be one call. Returns what ends the watch; may be called at any time, before
        `start` too.
        """

    def commit(operations: Sequence[Operation]) -> defer.Deferred[tuple[str, ...]]:
        """Do all or nothing. Fires with the paths of the created nodes, whole, with their digits, in order.

        Fails with Conflict, NoAnswer, SessionLost, NotAllowed, or CoordinationError where the servers have a limit or a
        fault that is none of these. Raises ValueError for more than MAX_COMMIT_BYTES of paths
        and data, which no server takes, and as all methods do for a path that makes no sense.
        """
