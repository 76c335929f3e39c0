"""A proxy on loopback whose link can be cut: connections stay open and nothing gets through, as when a cable is pulled."""

from __future__ import annotations

import contextlib
import socket
import threading

READ_BYTES = 64 * 1024


class CuttingProxy:
    """Hands on what comes to `address` to the loopback port `to`. One thread for each direction of a connection."""

    def __init__(self, to: int, host: str = "127.0.0.1", port: int = 0) -> None:
        self._to = to
        self._flows = threading.Event()
        self._flows.set()
        self._listening = socket.create_server((host, port))
        self.address = "{}:{}".format(*self._listening.getsockname())
        self._open: list[socket.socket] = [self._listening]
        self._start(self._accept)

    def cut(self) -> None:
        """Let nothing through, in no direction: no bytes, no new connections, no ends of old ones."""
        self._flows.clear()

    def heal(self) -> None:
        """Let everything through, what waited first."""
        self._flows.set()

    def stop(self) -> None:
        """Close everything."""
        self._flows.set()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            ours, _ = self._listening.accept()
            self._flows.wait()
            try:
                theirs = socket.create_connection(("127.0.0.1", self._to))
            except ConnectionError:
                ours.close()
                continue
            self._open += (ours, theirs)
            self._start(self._hand_on, ours, theirs)
            self._start(self._hand_on, theirs, ours)

    def _hand_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(READ_BYTES):
                self._flows.wait()
                target.sendall(data)
        finally:
            self._flows.wait()
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

    @staticmethod
    def _start(work: object, *arguments: object) -> None:
        def quietly() -> None:
            with contextlib.suppress(OSError):
                work(*arguments)  # type: ignore[operator]

        threading.Thread(target=quietly, name="cutting-proxy", daemon=True).start()
