"""The reactor over a loop of the application's: what Twisted asks of it, and that no other one is installed."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys

import pytest
from twisted.internet import defer, error, interfaces
from zope.interface.verify import verifyObject

from tests.support.faces import ServedCluster
from twisted_mq.aio.awaiting import deferred_of, to_its_end
from twisted_mq.aio.loop_reactor import LoopCall, LoopReactor
from twisted_mq.client import ClientStateError
from twisted_mq.logs import log_to_standard
from twisted_mq.reactor_threads import threads_of

PROGRAM = """
import asyncio, sys
from twisted_mq.aio import ConsumeFromWhere, ConsumerOptions, Message, Producer, PushConsumer

async def main(namesrv, topic):
    async with Producer(namesrv, group="g") as producer:
        await producer.send(Message(topic, b"x"))
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    async with PushConsumer(namesrv, group="g", topics={topic: "*"}, options=options) as consumer:
        async for message in consumer:
            await message.ack()
            break

asyncio.run(main(*sys.argv[1:]))
print("twisted.internet.reactor" in sys.modules)
"""


def test_no_reactor_is_installed_by_names_of_hosts_or_anything_else(cluster: ServedCluster) -> None:
    port = cluster.namesrv.rpartition(":")[2]
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", PROGRAM, f"localhost:{port}", cluster.topic()]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


BY_PAGE = """
import asyncio, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from twisted_mq.aio import ClientOptions, Message, NameServerUnreachable, Producer

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path.endswith("/nsaddr") else 404)
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())

    def log_message(self, *words):
        pass

async def main(domain, topic):
    options = ClientOptions(address_server_domain=domain)
    async with Producer(group="g", client_options=options) as producer:
        print((await producer.send(Message(topic, b"x"))).status.name)
    options = ClientOptions(address_server_domain=domain, address_server_subgroup="none")
    async with Producer(group="g", client_options=options) as producer:
        try:
            await producer.send(Message(topic, b"x"))
        except NameServerUnreachable as error:
            print("404" in str(error))

server = HTTPServer(("127.0.0.1", 0), Page)
Thread(target=server.serve_forever, daemon=True).start()
asyncio.run(main(f"localhost:{server.server_port}", sys.argv[2]))
print("twisted.internet.reactor" in sys.modules)
server.shutdown()
server.server_close()
"""


def test_no_reactor_is_installed_by_a_page_of_name_servers(cluster: ServedCluster) -> None:
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", BY_PAGE, cluster.namesrv, cluster.topic()]
    environment = {name: value for name, value in os.environ.items() if name != "NAMESRV_ADDR"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stdout, done.stderr) == ("SEND_OK\nTrue\nFalse\n", "")


def test_timers_are_those_that_twisted_knows() -> None:
    async def main() -> None:
        reactor = LoopReactor()
        with pytest.raises(ClientStateError, match="this client is not started"):
            reactor.callLater(0, print)
        reactor.enter()
        fired: list[str] = []
        first = reactor.callLater(0.01, fired.append, "first")
        cancelled = reactor.callLater(0.01, fired.append, "cancelled")
        later, sooner = reactor.callLater(0, fired.append, "later"), reactor.callLater(60, fired.append, "sooner")
        verifyObject(interfaces.IDelayedCall, first)
        assert isinstance(first, LoopCall)
        cancelled.cancel()
        later.delay(0.02)
        sooner.reset(0.015)
        assert 0 < sooner.getTime() - reactor.seconds() <= 0.015
        while later.active():
            await asyncio.sleep(0.005)
        assert fired == ["first", "sooner", "later"]
        for call, expected in ((first, error.AlreadyCalled), (cancelled, error.AlreadyCancelled)):
            for use in (call.cancel, lambda call=call: call.reset(1), lambda call=call: call.delay(1)):
                with pytest.raises(expected):
                    use()

    asyncio.run(main())


def test_threads_are_those_of_the_loop() -> None:
    async def main() -> None:
        reactor = LoopReactor()
        reactor.enter()
        in_thread = threads_of(reactor)
        assert await in_thread(divmod, 7, 2).asFuture(reactor.loop) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await in_thread(divmod, 7, 0).asFuture(reactor.loop)

    asyncio.run(main())


def test_what_a_thread_tells_a_loop_that_is_closed_is_lost() -> None:
    reactor = LoopReactor()

    async def main() -> None:
        reactor.enter()

    asyncio.run(main())
    reactor.callFromThread(pytest.fail, "called")


def test_work_that_must_end_is_awaited_to_its_end_whoever_cancels() -> None:
    async def main() -> None:
        work: defer.Deferred[str] = defer.Deferred()
        waiting = asyncio.create_task(to_its_end(work))
        for _ in range(3):
            await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.sleep(0)
        assert not waiting.done()
        work.callback("done")
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


def test_a_coroutine_is_cancelled_with_its_deferred() -> None:
    async def main() -> None:
        ended: list[str] = []

        async def listener() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("cancelled")

        work = deferred_of(listener())
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(defer.CancelledError):
            await work.asFuture(asyncio.get_running_loop())
        assert ended == ["cancelled"]

    asyncio.run(main())


def test_errors_that_twisted_logs_are_records_of_logging(caplog: pytest.LogCaptureFixture) -> None:
    from twisted.logger import Logger, globalLogPublisher

    from twisted_mq import logs

    root = logging.getLogger()
    held = [handler for handler in root.handlers if handler is logs._to_twisted]
    for handler in held:
        root.removeHandler(handler)
    try:
        log_to_standard()
        log_to_standard()
        try:
            raise KeyError("not handled")
        except KeyError:
            Logger("twisted.somewhere").failure("unhandled")
    finally:
        globalLogPublisher.removeObserver(logs.to_standard)
        for handler in held:
            root.addHandler(handler)
    told = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [("twisted.somewhere", "CRITICAL", "unhandled")]
    assert "KeyError: 'not handled'" in caplog.text
