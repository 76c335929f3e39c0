"""The client core's reactor in plain calls: that of a loop which any thread may run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.client.core.errors import ClientStateError


class ThreadReactor(LoopReactor):
    """As LoopReactor. What threads have called wakes the loop where it sleeps, and only there."""

    _thread: LoopThread | None = None

    def enter_in(self, thread: LoopThread) -> None:
        """A member begins, in the loop of this thread, which runs."""
        self.enter()
        self._thread = thread

    def callFromThread(self, f: Callable[..., Any], *args: object, **kwargs: object) -> None:  # type: ignore[override]
        assert self._thread is not None  # nothing calls before the first member has begun
        with contextlib.suppress(
            ClientStateError
        ):  # stopped: nobody is there whom the result of a thread would interest
            self._thread.soon(functools.partial(f, *args, **kwargs))
