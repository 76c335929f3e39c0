"""Keeps messages of push consumers invisible while they are being consumed (Apache: ReceiptHandleProcessor).

A message is renewed shortly before it would become visible, for longer each time, until renewMaxTimeMillis is over. The
client keeps the handle that it got; acknowledgements find the newest handle by it. The messages of a client that is gone
become visible again soon (invisibleTimeMillisWhenClear), and so do those that a client did not take: its connection broke, or
it gave up the call, while they were on their way. A message is not renewed before the client has taken it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeAlias

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.logs import Logger
from twisted_mq.periodic import PeriodicJob
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.handles import Handle
from twisted_mq.proxy.parts import Parts

MINUTE_MS = 60_000
RENEWED_MS = tuple(minutes * MINUTE_MS for minutes in (1, 3, 5, 10, 30, 60))
"""The duration of each renewal of a message in ms; the last one repeats."""
TRIES = 3
MOST_OF_CLIENT = 100_000
"""The limit of messages of one client that are renewed. Further ones become visible when their time is over."""

Key: TypeAlias = tuple[str, str, str]
"""Group, message id, and handle as the client has it."""
Change = Callable[[GrpcClient, str, str, Handle, int], Coroutine[defer.Deferred[Any], Any, Handle]]


@attrs.define(eq=False)
class Kept:
    """A message that was handed to a client. `taken` is whether the client is known to have it. `settling` is whether its client
    tried to acknowledge it, to change its time or to make it a dead letter, and failed.
    """

    topic: str
    group: str
    handle: Handle
    since_ms: int
    renewals: int = 0
    failures: int = 0
    busy: bool = False
    """True while a renewal is under way."""
    waiting: list[defer.Deferred[None]] = attrs.field(factory=list)
    """Fire when that renewal ends."""
    taken: bool = False
    settling: bool = False


class Renewal:
    """The messages that are renewed, by client, and by group, message id and handle as the client has them."""

    log = Logger()

    def __init__(self, parts: Parts, change: Change) -> None:
        self._parts = parts
        self._change = change
        self._kept: dict[GrpcClient, dict[Key, Kept]] = {}
        self._job: PeriodicJob | None = None

    def start(self) -> None:
        """Start to look for messages to renew periodically."""
        seconds = self._parts.options.renew_schedule_period_millis / 1000
        self._job = PeriodicJob("renewal of receipt handles", self._parts.clock, seconds, self.look)

    def stop(self) -> None:
        """Stop renewing. A second call does nothing."""
        job, self._job = self._job, None
        if job is not None:
            job.stop()

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def add(self, client: GrpcClient, topic: str, key: Key, handle: Handle) -> None:
        """Add a message that was handed out.

        A message of a client that is gone meanwhile is not renewed, because nothing would end the renewal.
        """
        if not client.connected_now:
            return
        kept = self._kept.setdefault(client, {})
        if len(kept) < MOST_OF_CLIENT:
            kept[key] = Kept(topic, key[0], handle, self._parts.now_ms())

    def taken(self, client: GrpcClient, keys: Iterable[Key], *, taken: bool) -> None:
        """Note whether a client has taken messages; make them visible again if it has not taken them."""
        for key in keys:
            one = self._kept.get(client, {}).get(key)
            if one is None:
                continue
            if taken:
                one.taken = True
            else:
                self.remove(client, *key)
                self._give_back(client, one)

    def remove(self, client: GrpcClient, group: str, message_id: str, text: str) -> Kept | None:
        """Stop renewing a message, and return it with its newest handle. Return None for a message that is not renewed."""
        kept = self._kept.get(client)
        found = None if kept is None else kept.pop((group, message_id, text), None)
        if found is not None and not kept:
            del self._kept[client]
        return found

    def is_busy(self, client: GrpcClient, group: str, message_id: str, text: str) -> bool:
        """Return whether a renewal of a message is under way, so that its newest handle is not known."""
        found = self._kept.get(client, {}).get((group, message_id, text))
        return found is not None and found.busy

    @staticmethod
    async def newest(one: Kept) -> Handle:
        """Return the newest handle of a message, after a renewal that is under way."""
        if one.busy:
            waiting: defer.Deferred[None] = defer.Deferred()
            one.waiting.append(waiting)
            await waiting
        return one.handle

    def put_back(self, client: GrpcClient, message_id: str, text: str, one: Kept) -> None:
        """Keep a removed message for its client's next try, until its time is over: only its newest handle acknowledges it.

        It is neither renewed nor made visible soon, because a broker may have done what was asked.
        """
        one.settling = True
        if client.connected_now:
            self._kept.setdefault(client, {})[one.group, message_id, text] = one

    def look(self) -> None:
        """Renew the messages that would become visible soon."""
        now, options = self._parts.now_ms(), self._parts.options
        for client, kept in list(self._kept.items()):
            for key, one in list(kept.items()):
                if one.busy or one.handle.expires_ms - now >= options.renew_ahead_time_millis:
                    continue
                if now - one.since_ms >= options.renew_max_time_millis or one.failures >= TRIES:
                    self.remove(client, *key)
                elif one.settling or not one.taken:
                    if one.handle.expires_ms <= now:
                        self.remove(client, *key)
                else:
                    one.busy = True
                    self._renew(client, one)

    def _renew(self, client: GrpcClient, one: Kept) -> None:
        ms = RENEWED_MS[min(one.renewals, len(RENEWED_MS) - 1)]

        def renewed(handle: Handle) -> None:
            one.failures, one.renewals, one.handle = 0, one.renewals + 1, handle

        def failed(reason: failure.Failure) -> None:
            one.failures += 1
            self.log.warn("message not renewed: group={g} topic={t} {e}", g=one.group, t=one.topic, e=reason.value)

        def ended(_: None) -> None:
            one.busy = False
            waiting, one.waiting = one.waiting, []
            for each in waiting:
                each.callback(None)

        changed = self._change(client, one.topic, one.group, one.handle, ms)
        defer.ensureDeferred(changed).addCallbacks(renewed, failed).addCallback(ended)

    def forget(self, client: GrpcClient) -> None:
        """Make the messages visible again that a client was consuming when it went."""
        for one in self._kept.pop(client, {}).values():
            if not one.settling:
                self._give_back(client, one)

    def _give_back(self, client: GrpcClient, one: Kept) -> None:
        done = defer.ensureDeferred(self._given_back(client, one))
        done.addErrback(lambda reason: self.log.debug("message not returned: {e}", e=reason.value))

    async def _given_back(self, client: GrpcClient, one: Kept) -> None:
        handle = await self.newest(one)
        await self._change(client, one.topic, one.group, handle, self._parts.options.invisible_time_millis_when_clear)
