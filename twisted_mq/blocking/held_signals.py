"""Keeps what handlers of signals raise out of the client core while the main thread runs its loop.

Ctrl-C, a soft time limit or a handler that ends the process would else break off in the middle of what other threads need, too.
The handlers run when the loop has been left, which is at once.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # as `signal`, whose functions take ten times as long
import signal
import threading
from collections.abc import Callable
from typing import Any, Self

_REAL_TIME = 32
_SIGNALS = tuple(int(number) for number in sorted(signal.valid_signals()) if number < _REAL_TIME)
"""Those of real time aside, of which nobody makes errors."""
Handlers = list[tuple[int, Callable[..., Any]]]

_last: tuple[tuple[object, ...], Handlers] = (), []
"""All handlers of _SIGNALS as they were last, and those of them that are functions."""


def _python_handlers() -> Handlers:
    global _last
    found = tuple(map(_signal.getsignal, _SIGNALS))
    if found != _last[0]:
        _last = found, [(number, one) for number, one in zip(_SIGNALS, found, strict=True) if callable(one)]
    return _last[1]


def in_main_thread() -> bool:
    """Whether handlers of signals run in this thread."""
    return threading.get_ident() == threading.main_thread().ident


class HeldSignals:
    """For `with`, in the main thread. `leave` is called when a signal comes, and ends what is done there."""

    def __init__(self, leave: Callable[[], object]) -> None:
        self._leave = leave
        self._handlers: Handlers = []
        self._came: list[int] = []

    def __enter__(self) -> Self:
        self._handlers = _python_handlers()
        try:
            for number, _ in self._handlers:
                _signal.signal(number, self._note)
        except BaseException:  # of a signal whose turn had not come
            self._give_back()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._give_back()
        except BaseException:  # of a signal whose turn had come
            self._give_back()
            raise
        finally:
            self._handle()

    def _note(self, number: int, frame: object) -> None:
        self._came.append(number)
        self._leave()

    def _give_back(self) -> None:
        for number, handler in self._handlers:
            _signal.signal(number, handler)

    def _handle(self) -> None:
        """As if they came now, each one whatever another's handler raises."""
        if self._came:
            try:
                signal.raise_signal(self._came.pop(0))
            finally:
                self._handle()
