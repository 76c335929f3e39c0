"""Process of one face: `python -m tests.soak.clients.program FACE NAMESRV TOPIC DIRECTORY SECONDS`.

It writes DIRECTORY/FACE.sent, a line for each send, and prints its results at the end as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from twisted.internet import defer, task
from twisted.logger import globalLogBeginner, textFileLogObserver

from tests.soak.clients.awaited import AsyncioLoad, DeferredLoad
from tests.soak.clients.ledger import Ledger
from tests.soak.clients.threaded import BlockingLoad
from tests.soak.clients.work import WARM_SECONDS, Work


def deferreds(work: Work) -> None:
    async def main(reactor: Any) -> None:
        for seconds in (WARM_SECONDS, work.seconds):
            await DeferredLoad(work).run(seconds)
            work.rest(timers=len(reactor.getDelayedCalls()))

    try:
        task.react(lambda reactor: defer.Deferred.fromCoroutine(main(reactor)))
    except SystemExit as ended:
        if ended.code:
            raise


def asyncio_tasks(work: Work) -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        for seconds in (WARM_SECONDS, work.seconds):
            await AsyncioLoad(work).run(seconds)
            timers = sum(not timer.cancelled() for timer in loop._scheduled)
            work.rest(timers=timers, tasks=len(asyncio.all_tasks(loop)))

    asyncio.run(main())


def blocking_calls(work: Work) -> None:
    for seconds in (WARM_SECONDS, work.seconds):
        BlockingLoad(work).run(seconds)
        work.rest()


FACES = {"deferred": deferreds, "asyncio": asyncio_tasks, "blocking": blocking_calls}


def main(face: str, namesrv: str, topic: str, directory: str, seconds: str) -> None:
    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    with (Path(directory) / f"{face}.sent").open("w", buffering=1) as sent:
        ledger = Ledger(topic, sent)
        work = Work(namesrv, topic, ledger, float(seconds))
        FACES[face](work)
    seen = {"sends": ledger.statuses, "deliveries": ledger.deliveries, "again": ledger.again}
    print(json.dumps({**seen, "missing": ledger.missing, "rests": work.rests}))


if __name__ == "__main__":
    main(*sys.argv[1:])
