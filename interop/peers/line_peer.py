"""The test's side of a peer program that speaks JSON lines: requests by id, and messages as events."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interop.peers.process import PeerFailed, Process

Record = dict[str, Any]
Promise = Callable[[list[Record]], object]


class PeerError(Exception):
    """A command failed inside the peer: `type` is its exception's class name, `code` the response code or -1."""

    def __init__(self, error: Record) -> None:
        super().__init__(f"{error['type']} code={error['code']}: {error['message']}")
        self.type, self.code, self.message = error["type"], error["code"], error["message"]


class LinePeer:
    """Starts the program at construction. One thread reads its lines; any thread may ask."""

    def __init__(
        self,
        command: list[str],
        directory: Path,
        name: str,
        environment: Record | None = None,
        start_in: Path | None = None,
    ) -> None:
        pipes: Record = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
        self._process = Process.start(command, directory / f"{name}.log", start_in or directory, **pipes)
        self._ids = itertools.count(1)
        self._replies: dict[int, Record] = {}
        self._events: dict[tuple[str, str], list[Record]] = defaultdict(list)
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name=f"{name}-reader", daemon=True)
        self._reader.start()

    def request(self, command: str, /, *, seconds: float = 40, **arguments: Any) -> Any:
        """The command's result. Raises PeerError when it fails, PeerFailed when no answer comes."""
        return self.finish(self.begin(command, **arguments), seconds)

    def begin(self, command: str, /, **arguments: Any) -> int:
        """Send a command without waiting for its answer. Returns its number for `finish`."""
        number = next(self._ids)
        line = json.dumps({"id": number, "do": command, **arguments}) + "\n"
        stream = self._process.child.stdin
        assert stream is not None
        with self._changed:
            stream.write(line.encode())
            stream.flush()
        return number

    def finish(self, number: int, seconds: float = 40) -> Any:
        """The result of the command that `begin` numbered; raises as `request`."""
        self._wait(lambda: number in self._replies, f"answer to command {number}", seconds)
        reply = self._replies.pop(number)
        if "error" in reply:
            raise PeerError(reply["error"])
        return reply["result"]

    def events(self, kind: str, source: str) -> list[Record]:
        """Return the events that arrived so far, in order of arrival."""
        with self._changed:
            return list(self._events[kind, source])

    def wait_events(self, kind: str, source: str, promise: Promise, seconds: float) -> list[Record]:
        """The events of a source once `promise` holds for them."""
        seen = self._events[kind, source]
        self._wait(lambda: promise(seen), lambda: f"{kind} events of {source}; so far {len(seen)}", seconds)
        return self.events(kind, source)

    def kill(self) -> None:
        """SIGKILL: its connections break off without a goodbye."""
        self._process.kill()
        self._reader.join(5)

    def close(self) -> None:
        """End of input ends the program; what does not end is killed."""
        stream = self._process.child.stdin
        if stream is not None and not stream.closed:
            stream.close()
        try:
            self._process.child.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reader.join(5)

    def _wait(self, promise: Callable[[], object], what: str | Callable[[], str], seconds: float) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: self._ended or promise(), seconds) and promise():
                return
            said = what if isinstance(what, str) else what()
            why = "the peer ended" if self._ended else f"not within {seconds} s"
        raise PeerFailed(f"{why}: {said}\n{self._process.output_tail()}")

    def _read(self) -> None:
        stream = self._process.child.stdout
        assert stream is not None
        for line in stream:
            if line.startswith(b"{"):
                self._take(json.loads(line))
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, record: Record) -> None:
        with self._changed:
            if "event" in record:
                self._events[record["event"], record["consumer"]].append(record["message"])
            else:
                self._replies[record["id"]] = record
            self._changed.notify_all()
