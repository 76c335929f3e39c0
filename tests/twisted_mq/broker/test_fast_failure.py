"""Requests that waited too long for their turn are refused by the limits of their kind, and the others are served."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from tests.support.remoting import connect, frames, sent
from twisted_mq.broker.fast_failure import FastFailure
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic

COMMAND_SECONDS = 0.008
OF_ONE_READ = 20
CODES = (RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE, RequestCode.UPDATE_CONSUMER_OFFSET)


def waited(code: int, milliseconds: int, **options: Any) -> str | None:
    refusal = FastFailure(BrokerOptions(**options))(RemotingCommand(code), milliseconds / 1000, 7)
    return None if refusal is None else refusal.remark


@pytest.mark.parametrize(
    ("code", "milliseconds"),
    [
        (RequestCode.SEND_MESSAGE, 200),
        (RequestCode.CONSUMER_SEND_MSG_BACK, 200),
        (RequestCode.POP_MESSAGE, 5000),
        (RequestCode.LITE_PULL_MESSAGE, 5000),
        (RequestCode.HEART_BEAT, 31_000),
        (RequestCode.END_TRANSACTION, 3000),
        (RequestCode.ACK_MESSAGE, 3000),
        (RequestCode.GET_BROKER_RUNTIME_INFO, 5000),
    ],
)
def test_each_kind_has_apaches_limit(code: int, milliseconds: int) -> None:
    assert waited(code, milliseconds - 1) is None
    assert waited(code, milliseconds) == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while,"
        f" period in queue: {milliseconds}ms, size of queue: 7"
    )


def test_settings_decide_while_the_broker_runs() -> None:
    options = BrokerOptions(wait_time_mills_in_send_queue=50)
    decide = FastFailure(options)
    send = RemotingCommand(RequestCode.SEND_MESSAGE_V2)
    assert decide(send, 0.05, 1) is not None
    options.wait_time_mills_in_send_queue = 60
    assert decide(send, 0.05, 1) is None
    options.wait_time_mills_in_send_queue, options.broker_fast_failure_enable = 10, False
    assert decide(send, 0.05, 1) is None


@pytest.mark.parametrize("most_ms", [0, 1])
def test_a_limit_of_0_refuses_what_waited_for_a_millisecond_and_serves_the_rest(most_ms: int) -> None:
    assert waited(RequestCode.SEND_MESSAGE_V2, 0, wait_time_mills_in_send_queue=most_ms) is None
    assert waited(RequestCode.SEND_MESSAGE_V2, 1, wait_time_mills_in_send_queue=most_ms) is not None
    assert waited(RequestCode.PULL_MESSAGE, 0, wait_time_mills_in_pull_queue=0) is None


def test_offsets_and_members_are_never_refused() -> None:
    assert waited(RequestCode.UPDATE_CONSUMER_OFFSET, 100_000) is None
    assert waited(RequestCode.UNREGISTER_CLIENT, 100_000) is None


@pytest.mark.parametrize("code", CODES)
def test_what_waits_behind_other_connections_is_refused_at_once(code: int) -> None:
    """Fifty connections ask for 8 s of work in all; a send may wait 0.2 s of these."""
    clock = Clock()

    def process(_: Any, command: RemotingCommand) -> RemotingCommand:
        clock.rightNow += COMMAND_SECONDS  # as time goes by while a command is processed: no timer runs meanwhile
        return command.answer()

    traffic = Traffic({code: process}, clock, too_late=FastFailure(BrokerOptions()))
    transports = []
    for _ in range(50):
        channel = SocketChannel(traffic)
        transports.append(connect(channel))
        channel.dataReceived(frames(*(RemotingCommand(code, opaque=number) for number in range(OF_ONE_READ))))
    clock.advance(0)
    answers = [sent(transport) for transport in transports]
    assert all(sorted(one.opaque for one in of_one) == list(range(OF_ONE_READ)) for of_one in answers)
    refused = sum(one.code == ResponseCode.SYSTEM_BUSY for of_one in answers for one in of_one)
    if code == RequestCode.SEND_MESSAGE_V2:
        assert refused > 50 * OF_ONE_READ / 2
        assert clock.seconds() < 4
    else:
        assert refused == 0
