"""Limits the memory that the peers of one server may take, by connection and in total, in bytes.

It counts answers that a peer does not take, frames of which only a part has come, requests that wait for their answer,
and what the server remembers of a peer until it goes. Past a limit, one connection of the address that takes most is
closed: the one that holds the most answers, or the one whose frame began first. A request that is too much is refused; an
address may have half of what the others leave. So a server never holds more than its limits and one frame. Rows of
tables, which do not give way either, are shared out by the same rule (`may_have`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

import attrs

from twisted_mq.config.connection_options import ConnectionOptions


class HasShare(Hashable, Protocol):
    """A connection. `share_address` is the address whose share it is part of."""

    @property
    def share_address(self) -> str: ...


Peer = TypeVar("Peer", bound=HasShare)

HELD_OVERHEAD = 3072
"""The bytes that a waiting request takes in addition to its frame, as measured for a held pull."""


@attrs.define(eq=False)
class Budget(Generic[Peer]):
    """The limits, and what is held now. Peers that hold nothing are not kept.

    Answers that come late, such as those to held pulls, count as unsent.
    """

    options: ConnectionOptions = attrs.field(factory=ConnectionOptions)
    _unsent: dict[Peer, int] = attrs.field(factory=dict)
    _incomplete: dict[Peer, int] = attrs.field(factory=dict)
    """In the order in which the frames began."""
    _held: dict[Peer, int] = attrs.field(factory=dict)
    _held_by: dict[str, list[int]] = attrs.field(factory=dict)
    """The number of waiting requests and their bytes, by address."""
    _held_for: dict[Peer, str] = attrs.field(factory=dict)
    """The address for whose share the requests of a peer count, as long as some wait."""
    _remembered: dict[Peer, int] = attrs.field(factory=dict)
    _unsent_total: int = 0
    _incomplete_total: int = 0
    _held_total: int = 0
    _held_count: int = 0
    _remembered_total: int = 0

    @property
    def unsent_bytes(self) -> int:
        """The bytes of answers that wait for their peers."""
        return self._unsent_total

    @property
    def incomplete_bytes(self) -> int:
        """The bytes of unfinished frames."""
        return self._incomplete_total

    @property
    def held_bytes(self) -> int:
        """The bytes of requests that wait."""
        return self._held_total

    @property
    def remembered_bytes(self) -> int:
        """The bytes of names and subscriptions."""
        return self._remembered_total

    def not_taken(self, peer: Peer, size: int) -> Peer | None:
        """Count more bytes that wait for this peer. Returns the peer to cut off, None within the limits."""
        held = self._unsent[peer] = self._unsent.get(peer, 0) + size
        self._unsent_total += size
        if held > self.options.max_unsent_bytes_by_channel:
            return peer
        if self._unsent_total > self.options.max_unsent_bytes:
            return max(self._largest(self._unsent), key=self._unsent.__getitem__)
        return None

    @staticmethod
    def _largest(sizes: dict[Peer, int]) -> list[Peer]:
        """Return the peers of the address with the largest share, in their order."""
        by_address: dict[str, int] = {}
        for peer, size in sizes.items():
            by_address[peer.share_address] = by_address.get(peer.share_address, 0) + size
        largest = max(by_address, key=by_address.__getitem__)
        return [peer for peer in sizes if peer.share_address == largest]

    def taken(self, peer: Peer) -> None:
        """Release a peer's bytes, because it took all of them."""
        self._unsent_total -= self._unsent.pop(peer, 0)

    def came(self, peer: Peer, size: int) -> Peer | None:
        """Set the bytes of an unfinished frame of this peer. Returns the peer to cut off, None within the limits."""
        before = self._incomplete.get(peer, 0)
        self._incomplete_total += size - before
        if size < before:  # another frame has begun
            del self._incomplete[peer]
        if size:
            self._incomplete[peer] = size
        if self._incomplete_total > self.options.max_incomplete_bytes:
            return self._largest(self._incomplete)[0]
        return None

    def hold(self, peer: Peer, size: int, requests: int = 1) -> bool:
        """Return True if requests of that size may wait for this peer, and count them until `let_go`."""
        size += HELD_OVERHEAD * requests
        held, limits = self._held.get(peer, 0) + size, self.options
        address = self._held_for.get(peer) or peer.share_address
        by_address = self._held_by.get(address)
        if by_address is None:
            by_address = self._held_by[address] = [0, 0]
        count, total = by_address
        if (
            held > limits.max_held_bytes_by_channel
            or not may_have(total + size - 1, self._held_total + size - 1, limits.max_held_bytes)
            or not may_have(count + requests - 1, self._held_count + requests - 1, limits.max_held_requests)
        ):
            if not count:
                del self._held_by[address]
            return False
        self._held_for[peer] = address
        by_address[0] += requests
        by_address[1] += size
        self._held[peer] = held
        self._held_total += size
        self._held_count += requests
        return True

    def let_go(self, peer: Peer, size: int, requests: int = 1) -> None:
        """Release requests that do not wait any more."""
        size += HELD_OVERHEAD * requests
        self._held_total -= size
        self._held_count -= requests
        address = self._held_for[peer]
        by_address = self._held_by[address]
        by_address[0] -= requests
        by_address[1] -= size
        if not by_address[0]:
            del self._held_by[address]
        self._held[peer] -= size
        if not self._held[peer]:
            del self._held[peer], self._held_for[peer]

    def remember(self, peer: Peer, more: int) -> bool:
        """Return True if that many more bytes (or fewer, below 0) may be remembered of this peer, and count them until it
        goes.
        """
        size = self._remembered.get(peer, 0) + more
        limits = self.options
        if more > 0 and (
            size > limits.max_remembered_bytes_by_channel or self._remembered_total + more > limits.max_remembered_bytes
        ):
            return False
        self._remembered[peer] = size
        self._remembered_total += more
        return True

    def forget(self, peer: Peer) -> None:
        """Release the answers and frames of a peer that is gone; its waiting requests are released when they are answered."""
        self._remembered_total -= self._remembered.pop(peer, 0)
        self.taken(peer)
        self._incomplete_total -= self._incomplete.pop(peer, 0)


def may_have(held: int, total: int, limit: int) -> bool:
    """Return True if an address with `held` of `total` rows may have one more: up to half of what the others leave."""
    return total < limit and held < (limit - (total - held) + 1) // 2
