"""How much memory the peers of one server may take, by connection and in total, in bytes.

Counted are answers that a peer does not take and frames of which only a part has come. Past a limit one connection is
cut: the one that holds the most answers, or whose frame has been on its way for the longest time. So a server never
holds more than its limits and one frame.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

Peer = TypeVar("Peer", bound=Hashable)

MIB = 1 << 20


@attrs.define(eq=False)
class Budget(Generic[Peer]):
    """The limits, and what is held now. Peers that hold nothing are not kept."""

    max_unsent_by_channel: int = 64 * MIB
    """Four of the largest frames; what comes late, such as answers to held pulls, adds up here."""
    max_unsent: int = 512 * MIB
    max_incomplete: int = 256 * MIB
    _unsent: dict[Peer, int] = attrs.field(factory=dict)
    _incomplete: dict[Peer, int] = attrs.field(factory=dict)
    """In the order in which the frames began."""
    _unsent_total: int = 0
    _incomplete_total: int = 0

    @property
    def unsent_bytes(self) -> int:
        """Answers that wait for their peers."""
        return self._unsent_total

    @property
    def incomplete_bytes(self) -> int:
        """Parts of frames."""
        return self._incomplete_total

    def not_taken(self, peer: Peer, size: int) -> Peer | None:
        """So many more bytes wait for this peer. Returns the peer that is to be cut off, None within the limits."""
        held = self._unsent[peer] = self._unsent.get(peer, 0) + size
        self._unsent_total += size
        if held > self.max_unsent_by_channel:
            return peer
        if self._unsent_total > self.max_unsent:
            return max(self._unsent, key=self._unsent.__getitem__)
        return None

    def taken(self, peer: Peer) -> None:
        """The peer took all that waited for it."""
        self._unsent_total -= self._unsent.pop(peer, 0)

    def came(self, peer: Peer, size: int) -> Peer | None:
        """So many bytes of a frame of this peer are held now. Returns the peer to cut off, None within the limits."""
        before = self._incomplete.get(peer, 0)
        self._incomplete_total += size - before
        if size < before:  # another frame has begun
            del self._incomplete[peer]
        if size:
            self._incomplete[peer] = size
        if self._incomplete_total > self.max_incomplete:
            return next(iter(self._incomplete))
        return None

    def forget(self, peer: Peer) -> None:
        """The peer is gone, and what it held with it."""
        self.taken(peer)
        self._incomplete_total -= self._incomplete.pop(peer, 0)
