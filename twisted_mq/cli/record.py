"""Implements `mq record`: a proxy between clients and a server that keeps every frame."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from twisted_mq.cli.errors import CliError

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from twisted_mq.storage.recording import SegmentWriter

_FLUSH_SECONDS = 1.0


@click.command(short_help="Record the traffic between clients and a server, for Spark.")
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--to", "server", default="127.0.0.1:9876", show_default=True, help="Address of the name server or broker."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1 to listen on; 0 selects a free port."
)
@click.option(
    "--follow", is_flag=True, help="Record traffic to the brokers too: routes name proxies in place of brokers."
)
def record(directory: str, server: str, port: int, follow: bool) -> None:
    """Listen on 127.0.0.1, forward to a server, and record every frame in segments in DIRECTORY until Ctrl-C.

    Frames are forwarded unchanged. With --follow, broker addresses in routes are replaced with the addresses of
    proxies, so that clients that use this proxy as name server stay on it. Encrypted connections are forwarded
    and not recorded. Frames hold what clients sent, access keys and bodies included.

    \b
    Example:
      mq record traffic --follow --port 19876
      mq consume Orders --group audit --namesrv 127.0.0.1:19876    in another terminal
    """
    from twisted_mq.cli.run import Interrupted, run_under_reactor
    from twisted_mq.protocol.layouts.host import parse_host_text
    from twisted_mq.storage.recording import SegmentWriter

    try:
        target = parse_host_text(server)
    except ValueError:
        raise CliError(f"--to {server!r} is not an address", "use HOST:PORT, such as 127.0.0.1:9876") from None
    writer = SegmentWriter(directory)
    try:
        run_under_reactor(lambda reactor: _serve(reactor, target, port, follow, writer))
    except Interrupted:
        click.echo(f"{writer.frames} frames in {directory}")
    finally:
        writer.close()


async def _serve(
    reactor: IReactorTime, server: tuple[str, int], port: int, follow: bool, writer: SegmentWriter
) -> None:
    """Serve until this coroutine is cancelled."""
    from twisted.internet.interfaces import IReactorSocket
    from twisted.internet.task import LoopingCall

    from twisted_mq.recording.advertised import LOOPBACK, Advertised, RouteRewrite
    from twisted_mq.recording.proxy import ProxyFactory, Rewrite
    from twisted_mq.remoting.listen import bind, listen

    def keep(from_client: bool, connection: bytes, frame: bytes) -> None:
        writer.append(time.time_ns() // 1000, from_client, connection, frame)

    def rewrite() -> Rewrite:
        return RouteRewrite(advertised.proxy_of) if follow else unchanged

    def factory_for(address: tuple[str, int]) -> ProxyFactory:
        return ProxyFactory(reactor, address, keep, rewrite)

    advertised = Advertised(IReactorSocket(reactor), factory_for)
    bound = bind(LOOPBACK, port, "--port")
    click.echo(f"recording {server[0]}:{server[1]} at {LOOPBACK}:{bound.getsockname()[1]}; Ctrl-C ends it")
    listen(IReactorSocket(reactor), bound, factory_for(server))
    flushing = LoopingCall(writer.flush)
    flushing.clock = reactor
    await flushing.start(_FLUSH_SECONDS)


def unchanged(from_client: bool, frame: bytes) -> bytes:
    """Return the frame, for connections on which nothing is rewritten."""
    return frame
