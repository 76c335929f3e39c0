"""A name server and a broker to be fuzzed, in a process of their own: `python -m tests.fuzz.server STORE`.

Prints one JSON object with the ports once both serve, then logs to stderr; SIGTERM stops it.
"""

from __future__ import annotations

import json
import logging
import sys

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from interop.peers.process import free_port
from twisted_mq import logs
from twisted_mq.testing import EmbeddedCluster

OPTIONS = {"ha_listen_port": 0, "channel_expired_timeout": 5_000, "broker_role": "ASYNC_MASTER"}


async def serve(store: str) -> None:
    cluster = EmbeddedCluster(
        reactor,
        store,
        broker_port=free_port(),
        broker_options={"mapped_file_size_commit_log": 16 << 20, **OPTIONS},
    )
    await cluster.start()
    reactor.addSystemEventTrigger("before", "shutdown", lambda: Deferred.fromCoroutine(cluster.stop()))  # type: ignore[attr-defined]
    broker = cluster.broker
    print(
        json.dumps(
            {
                "namesrv": cluster.namesrv.port,
                "broker": broker.port,
                "fast": broker.port - 2,
                "grpc": int(cluster.serve_grpc().rpartition(":")[2]),
                "ha": int(broker.controller.ha.address.rpartition(":")[2]),
            }
        ),
        flush=True,
    )


def main() -> None:
    logs.log_to_standard()
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s", force=True
    )  # in place of the handler and the level that the package of the tests has set
    logging.getLogger(logs.PACKAGE).setLevel(logging.WARNING)
    starting = Deferred.fromCoroutine(serve(sys.argv[1]))
    starting.addErrback(lambda reason: (reason.printTraceback(sys.stderr), reactor.stop()))  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
