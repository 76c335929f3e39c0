"""The two lists of an ordered queue, and what is declared of an ordered topic.

The send list's head alone takes sends, the consume list's head alone is consumed. The consume list names the groups in
the order in which they took sends, each with the epoch in which it did.
"""

from __future__ import annotations

import attrs

WHOLE_TOPIC = "all"
"""The unit of a topic whose queues move together, where others have the queue's number."""


@attrs.frozen
class Term:
    """A group that was, or is, the head of the send list, and the epoch of that."""

    group: str
    epoch: int


@attrs.frozen
class Lists:
    """Of one unit: a queue, or a whole topic. `epoch` counts heads of the send list from 1; 0 before the first."""

    epoch: int = 0
    send: tuple[str, ...] = ()
    consume: tuple[Term, ...] = ()

    @property
    def head(self) -> str | None:
        """The group that takes sends; None where senders wait. Its epoch is `epoch`."""
        return self.send[0] if self.send else None

    @property
    def consumed(self) -> Term | None:
        """The group to consume from; None where nothing is left anywhere and nobody takes sends."""
        return self.consume[0] if self.consume else None

    def has_backlog(self, group: str) -> bool:
        """Whether a group may hold messages that are not consumed."""
        return any(term.group == group for term in self.consume)


@attrs.frozen
class OrderedTopic:
    """A declaration. `groups` are broker names, in the order of preference."""

    topic: str
    queues: int
    groups: tuple[str, ...]
    together: bool = False

    @property
    def units(self) -> tuple[str, ...]:
        """The last part of its units' paths."""
        return (WHOLE_TOPIC,) if self.together else tuple(str(queue) for queue in range(self.queues))
