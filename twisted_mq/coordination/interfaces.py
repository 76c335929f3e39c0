"""One session with the coordinator: reads, watches, changes of several nodes at once, and how long the session surely holds.

Paths begin with `/` and are below the chroot of the address. Nodes have data of up to 1 MiB and a version that counts its
changes from 0. All methods are called, and all Deferreds and callbacks fire, on the reactor's thread.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import attrs
from twisted.internet import defer
from zope.interface import Attribute, Interface


class CoordinationError(Exception):
    """Something the coordinator did not do; the text says what to do about it."""


class Conflict(CoordinationError):
    """A node has another version than was given, is there already, is missing, or has children: nothing was changed."""


class NoAnswer(CoordinationError):
    """The connection was lost or an answer did not come in time: the change may have happened or not."""


class SessionLost(CoordinationError):
    """The session is over, its ephemeral nodes are gone."""


class NotAllowed(CoordinationError):
    """The coordinator refuses this client (authentication, access rights) or the address has a chroot that is missing."""


@attrs.frozen
class Node:
    """One node as it was read. `session` is the id of the session that an ephemeral node lives as long as, otherwise 0."""

    data: bytes
    version: int
    session: int = 0


@attrs.frozen
class Create:
    """A new node. With `sequential` ten digits that count up are added to the path. Parents must be there."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@attrs.frozen
class Put:
    """Other data for a node that has this version."""

    path: str
    data: bytes
    version: int


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
    """The session begins or goes on; watches have been told of what they missed."""
    DISCONNECTED = "disconnected"
    """The server can't be reached; the session may go on."""
    LOST = "lost"
    """The session is over. A new one begins by itself; CONNECTED follows, with another `session_id`."""


Changed = Callable[[], object]
"""Something about a watched node changed; read again."""


class ICoordinator(Interface):
    """One client of the coordinator, with one session at a time."""

    session_id = Attribute("int: the present session's id, 0 where there is none")

    session_seconds = Attribute("float: the session's time out as the server granted it, in seconds")

    def start() -> defer.Deferred[None]:
        """Connect. Fires with the first session; fails with NotAllowed or NoAnswer after the connect time."""

    def stop() -> defer.Deferred[None]:
        """End the session: its ephemeral nodes are gone when this fires. Never fails."""

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
        """The names of a node's children, sorted; none where the node is missing. Fails as `read` does."""

    def watch(path: str, changed: Changed) -> Callable[[], None]:
        """Call `changed` after each change of the node's data, existence or list of children, and after each CONNECTED.

        Changes in quick succession may be one call. Returns what ends the watch.
        """

    def commit(operations: Sequence[Operation]) -> defer.Deferred[tuple[str, ...]]:
        """Do all or nothing. Fires with the paths of the created nodes, whole, with their digits, in order.

        Fails with Conflict, NoAnswer, SessionLost or NotAllowed.
        """
