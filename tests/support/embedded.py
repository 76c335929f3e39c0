"""A name server and a broker in a process of their own, for tests whose own thread makes blocking calls.

python -m tests.support.embedded STORE NAMESRV_PORT BROKER_PORT [attribute=value ...]

Prints the two addresses as JSON when both are up; ends when its standard input does. Port 0 takes a free one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any

import attrs
from twisted.internet import defer, reactor, threads

from twisted_mq.testing import EmbeddedCluster


@attrs.define
class EmbeddedProcess:
    """The process, seen from a test: `with EmbeddedProcess(store) as server: server.name_server`."""

    store: str
    namesrv_port: int = 0
    broker_port: int = 0
    options: tuple[str, ...] = ()
    name_server: str = attrs.field(init=False, default="")
    broker: str = attrs.field(init=False, default="")
    _process: Any = attrs.field(init=False, default=None)

    def start(self) -> EmbeddedProcess:
        ports = [str(self.namesrv_port), str(self.broker_port)]
        command = [sys.executable, "-m", "tests.support.embedded", self.store, *ports, *self.options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        addresses = json.loads(self._process.stdout.readline())
        self.name_server, self.broker = addresses["name_server"], addresses["broker"]
        self.namesrv_port, self.broker_port = (int(one.rpartition(":")[2]) for one in addresses.values())
        return self

    def kill(self) -> None:
        """As a power cut would: nothing is closed."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        self._process.stdin.close()
        self._end()

    def _end(self) -> None:
        self._process.wait(60)
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()

    def __enter__(self) -> EmbeddedProcess:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.stop()


async def serve(store: str, namesrv_port: int, broker_port: int, options: dict[str, Any]) -> None:
    cluster = EmbeddedCluster(
        reactor, store, namesrv_port=namesrv_port, broker_port=broker_port, broker_options=options
    )
    await cluster.start()
    print(json.dumps({"name_server": cluster.name_server, "broker": cluster.broker_address}), flush=True)
    await threads.deferToThread(sys.stdin.read)
    await cluster.stop()
    reactor.stop()


def main(store: str, namesrv_port: str, broker_port: str, *options: str) -> None:
    values = {name: json.loads(value) for name, _, value in (option.partition("=") for option in options)}
    serving = defer.ensureDeferred(serve(store, int(namesrv_port), int(broker_port), values))
    serving.addErrback(lambda failure: (failure.printTraceback(), reactor.stop()))
    reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
