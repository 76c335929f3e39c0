"""Handles SIGHUP: the terminal is gone, or the log file was moved away."""

from __future__ import annotations

import signal
from collections.abc import Callable

from twisted.internet.interfaces import IReactorCore, IReactorFromThreads


def on_hang_up(reactor: object, reopen: Callable[[], object] | None = None) -> None:
    """Make the signal call `reopen` in the reactor's thread; without `reopen` it stops the reactor, unless nohup blocks it.

    Call it in the main thread only. On systems without this signal it does nothing.
    """
    number = getattr(signal, "SIGHUP", None)
    if number is None or (reopen is None and signal.getsignal(number) is signal.SIG_IGN):
        return
    from_thread, core = IReactorFromThreads(reactor), IReactorCore(reactor)
    has_stopped = False

    def stop() -> None:
        """Stop the reactor once: a second signal may come before the first one is handled."""
        nonlocal has_stopped
        if not has_stopped:
            has_stopped = True
            core.stop()

    def hung_up(*_: object) -> None:
        if reopen is None:
            signal.signal(number, signal.SIG_IGN)  # shells and terminals may both send one
        from_thread.callFromThread(reopen or stop)

    signal.signal(number, hung_up)
