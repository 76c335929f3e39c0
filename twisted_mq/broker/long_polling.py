"""Pulls that wait for messages (Apache: PullRequestHoldService).

A pull that finds nothing is held for its queue. An arriving message marks the queue; after the dispatch of a batch
the marked queues' pulls are answered together, so that one answer carries the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import attrs
from twisted.internet import defer

HOLD_CHECK_SECONDS = 5.0
"""How often held pulls are looked at for their time limit (Apache: 5 s)."""


@attrs.define(eq=False)
class HeldPull:
    """A waiting pull: `answer()` reads again, without waiting, and gives the answer.

    `found()` says whether an arrival that the tags let pass is one that it waits for; None: it is.
    """

    offset: int
    tags_codes: Collection[int] | None
    expires_ms: int
    answer: Callable[[], Any]
    connected: Callable[[], bool]
    found: Callable[[], bool] | None = None
    done: defer.Deferred[Any] = attrs.field(init=False)


class PullRequestHoldService:
    """Held pulls by (topic, queue id)."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], list[HeldPull]] = {}
        self._woken: dict[tuple[str, int], set[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def hold(self, topic: str, queue_id: int, pull: HeldPull) -> defer.Deferred[Any]:
        """Let a pull wait; the Deferred fires with its answer. Who cancels it gets none."""
        pull.done = defer.Deferred(lambda _: self._cancelled((topic, queue_id), pull))
        self._held.setdefault((topic, queue_id), []).append(pull)
        self._count += 1
        return pull.done

    def _cancelled(self, key: tuple[str, int], pull: HeldPull) -> None:
        pulls = self._held.get(key, [])
        if pull in pulls:
            self._held[key] = [one for one in pulls if one is not pull]
            self._count -= 1

    def message_arriving(
        self, topic: str, queue_id: int, queue_offset: int, tags_code: int, store_timestamp: int
    ) -> None:
        """The store's arrival listener."""
        key = (topic, queue_id)
        if key in self._held:
            self._woken.setdefault(key, set()).add(tags_code)

    def answer_woken(self) -> None:
        """Answer the pulls that an arrived message matches."""
        if not self._woken:
            return
        woken, self._woken = self._woken, {}
        for key, tags_codes in woken.items():
            self._answer(key, lambda pull, codes=tags_codes: self._matches(pull, codes))

    def answer_expired(self, now_ms: int) -> None:
        """Answer the pulls whose time is up; forget those whose connection is gone."""
        for key in list(self._held):
            self._answer(key, lambda pull: pull.expires_ms <= now_ms or not pull.connected())

    def answer_queue(self, topic: str, queue_id: int) -> None:
        """Answer the pulls of one queue: a reader among them is to go on elsewhere."""
        self._answer((topic, queue_id), lambda pull: True)

    def answer_all(self) -> None:
        """Answer every pull (the broker stops)."""
        for key in list(self._held):
            self._answer(key, lambda pull: True)

    @staticmethod
    def _matches(pull: HeldPull, arrived: set[int]) -> bool:
        if pull.tags_codes is not None and arrived.isdisjoint(pull.tags_codes):
            return False
        if pull.found is None or not pull.connected():
            return True
        try:
            return pull.found()
        except Exception:
            return True  # the answer meets the same, and tells the puller

    def _answer(self, key: tuple[str, int], due: Callable[[HeldPull], bool]) -> None:
        pulls = self._held.pop(key, [])
        finished: list[HeldPull] = []
        waiting: list[HeldPull] = []
        for pull in pulls:
            (finished if due(pull) else waiting).append(pull)
        if waiting:
            self._held[key] = waiting
        self._count -= len(finished)
        for pull in finished:
            self._finish(pull)

    @staticmethod
    def _finish(pull: HeldPull) -> None:
        if not pull.connected():
            pull.done.callback(None)
            return
        try:
            answer = pull.answer()
        except Exception:
            pull.done.errback()
        else:
            pull.done.callback(answer)
