"""If requests are signed, shares of the budgets belong to accounts."""

from __future__ import annotations

from pathlib import Path

from tests.support.access import ROOT, Signer, asking_broker
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import sign
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.shares import address_of, share_of_account


def test_a_connection_uses_the_share_of_the_first_account_that_it_shows(tmp_path: Path) -> None:
    broker = asking_broker(str(tmp_path))
    moved: list[str] = []
    broker.traffic.share_moved = lambda channel, before: moved.append(before)
    root = Signer(broker, ROOT)
    channel = root.peer.channel
    assert channel.share_address == address_of("127.0.0.1")
    assert root.ask(RequestCode.GET_BROKER_CONFIG)[0] == 0
    assert (channel.share_address, moved) == (share_of_account("root"), ["127.0.0.1"])
    channel.proven("another")
    assert channel.share_address == share_of_account("root")


def test_a_wrong_signature_shows_no_account(tmp_path: Path) -> None:
    broker = asking_broker(str(tmp_path))
    peer = broker.connect()
    command = RemotingCommand.request(RequestCode.GET_BROKER_CONFIG, {})
    sign(command, ROOT)
    command.ext_fields["Signature"] = "AAAA"
    peer.send(command)
    assert peer.channel.share_address == "127.0.0.1"


def test_what_waits_counts_for_whom_it_began_to_wait(tmp_path: Path) -> None:
    broker = asking_broker(str(tmp_path))
    channel = broker.connect().channel
    budget = broker.traffic.budget
    assert budget.hold(channel, 10)
    channel.proven("root")
    assert budget.hold(channel, 20)
    budget.let_go(channel, 10)
    budget.let_go(channel, 20)
    assert (budget.held_bytes, budget._held_by, budget._held_for) == (0, {}, {})
    assert budget.hold(channel, 10) and list(budget._held_by) == [share_of_account("root")]
    assert isinstance(budget, Budget)
