"""The client core's reactor in plain calls, on the loop of the background thread."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.client.core.errors import ClientStateError


class ThreadReactor(LoopReactor):
    """A LoopReactor whose `callFromThread` wakes the loop only while it sleeps."""

    _thread: LoopThread | None = None

    def enter_in(self, thread: LoopThread) -> None:
        """Add a member, in the running loop of this thread."""
        self.enter()
        self._thread = thread

    def callFromThread(self, f: Callable[..., Any], *args: object, **kwargs: object) -> None:  # type: ignore[override]
        assert self._thread is not None  # nothing calls before the first member has started
        with contextlib.suppress(
            ClientStateError
        ):  # stopped meanwhile: nothing waits any longer for the result of the thread
            self._thread.soon(functools.partial(f, *args, **kwargs))
