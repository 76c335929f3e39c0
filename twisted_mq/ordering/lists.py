"""Defines the two lists of an ordered queue, and the declaration of an ordered topic.

Only the head of the send list takes sends, and only the head of the consume list is consumed. The consume list names the
groups in the order in which they took sends, each with the epoch in which it did.
"""

from __future__ import annotations

import attrs

WHOLE_TOPIC = "all"
"""The unit of a topic whose queues move together; other units have the queue's number."""


@attrs.frozen
class Term:
    """A group that was, or is, the head of the send list, and the epoch of that."""

    group: str
    epoch: int


@attrs.frozen
class StoreMark:
    """The newest message of a unit in a group's store: its epoch and its leader's term, 0 without a message."""

    group: str
    epoch: int
    leader: int = 0


@attrs.frozen
class Lists:
    """The two lists of a unit: a queue, or a whole topic. `epoch` counts heads of the send list; it is 0 before the first.

    `led` has the newest epoch of each group that was ever the head, by group. An older version did not write it: then
    nothing is known of the epochs up to `led_from`, which is 0 otherwise. `stores` is empty unless a group's store holds
    messages of an epoch that is newer than that. It then has a mark of each group. `forks` are terms in whose epoch another
    group took messages, too, because the coordinator went back; a repair records them.
    """

    epoch: int = 0
    send: tuple[str, ...] = ()
    consume: tuple[Term, ...] = ()
    stores: tuple[StoreMark, ...] = ()
    forks: tuple[Term, ...] = ()
    led: tuple[Term, ...] = ()
    led_from: int = 0

    @property
    def head(self) -> str | None:
        """Return the group that takes sends; None if senders wait. Its epoch is `epoch`."""
        return self.send[0] if self.send else None

    @property
    def consumed(self) -> Term | None:
        """Return the group to consume from; None if nothing is left anywhere and no group takes sends."""
        return self.consume[0] if self.consume else None

    @property
    def overtaken_by(self) -> StoreMark | None:
        """Return the newest mark of a store that the lists do not explain: the coordinator went back. None for sound lists."""
        return max(filter(self.is_behind, self.stores), key=lambda mark: mark.epoch, default=None)

    def is_behind(self, mark: StoreMark) -> bool:
        """Return True if the group's newest message has an epoch in which, for all the lists know, it was not the head."""
        known = next((term.epoch for term in self.led if term.group == mark.group), 0)
        if mark.epoch > max(known, self.led_from):
            return True
        owners = {term.group for term in self.consume if term.epoch == mark.epoch}
        return bool(owners) and mark.group not in owners and Term(mark.group, mark.epoch) not in self.forks

    def with_leader(self, term: Term) -> tuple[Term, ...]:
        """Return `led` with a group that was the head in an epoch."""
        others = [one for one in self.led if one.group != term.group]
        return tuple(sorted((*others, term), key=lambda one: one.group))

    def has_backlog(self, group: str) -> bool:
        """Return True if a group may hold messages that are not consumed."""
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
        """Return the last parts of its units' paths."""
        return (WHOLE_TOPIC,) if self.together else tuple(str(queue) for queue in range(self.queues))
