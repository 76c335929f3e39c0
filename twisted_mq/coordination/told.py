"""Keeps callbacks: listeners of a session, and watches of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from twisted_mq.coordination.interfaces import Changed, SessionEvent
from twisted_mq.logs import Logger

Listener = Callable[[SessionEvent], object]


class Told:
    """The callbacks of one client. If one fails it is logged, and the others are called all the same."""

    log = Logger()

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}
        self._watches: dict[str, dict[object, Changed]] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the watched paths."""
        return tuple(self._watches)

    def is_watched(self, path: str) -> bool:
        """Return True if the node has a watch."""
        return path in self._watches

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener. Returns a function that removes it; a second call is harmless."""
        key = object()
        self._listeners[key] = listener
        return lambda: _drop(self._listeners, key)

    def watch(self, path: str, changed: Changed, unwatched: Callable[[str], object]) -> Callable[[], None]:
        """Add a watch. Returns a function that removes it; `unwatched` is called with the path after its last watch."""
        key = object()
        self._watches.setdefault(path, {})[key] = changed

        def end() -> None:
            watches = self._watches.get(path, {})
            if watches.pop(key, None) is not None and not watches:
                del self._watches[path]
                unwatched(path)

        return end

    def event(self, event: SessionEvent) -> None:
        """Call the listeners; after CONNECTED, every watch too."""
        for key, listener in tuple(self._listeners.items()):
            if key in self._listeners:
                self._call(listener, event)
        if event is SessionEvent.CONNECTED:
            self.changed(self.paths)

    def changed(self, paths: Iterable[str]) -> None:
        """Call the watches of these nodes."""
        for changed in tuple(self._of(paths)):
            self._call(changed)

    def _of(self, paths: Iterable[str]) -> Iterator[Changed]:
        for path in paths:
            yield from self._watches.get(path, {}).values()

    def _call(self, callback: Callable[..., object], *arguments: object) -> None:
        try:
            callback(*arguments)
        except Exception:
            self.log.failure("{callback!r} failed when the coordinator called it", callback=callback)


def _drop(kept: dict[object, Listener], key: object) -> None:
    kept.pop(key, None)
