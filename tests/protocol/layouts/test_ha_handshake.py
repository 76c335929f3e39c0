from __future__ import annotations

import pytest

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.ha import TransferDecoder, encode_report, encode_transfer_header
from twisted_mq.protocol.layouts.ha_handshake import (
    ANSWER_BYTES,
    CHALLENGE_SIZE,
    PROOF_BYTES,
    HandshakeRefused,
    MasterHandshake,
    SlaveHandshake,
)

SECRET = "a long and random word"
MASTER_NONCE, SLAVE_NONCE = b"m" * 32, b"s" * 32


def pair(of_slave: str = SECRET) -> tuple[MasterHandshake, SlaveHandshake]:
    return MasterHandshake(SECRET, MASTER_NONCE), SlaveHandshake(of_slave, SLAVE_NONCE)


def test_both_sides_prove_the_secret_and_keep_what_follows() -> None:
    master, slave = pair()
    proof, rest = slave.receive_data(master.challenge)
    assert (len(proof), rest) == (PROOF_BYTES, None)
    answer = master.receive_data(proof + b"report")
    assert answer is not None
    assert (len(answer[0]), answer[1]) == (ANSWER_BYTES, b"report")
    assert slave.receive_data(answer[0] + b"frames") == (b"", b"frames")
    assert SECRET.encode() not in master.challenge + proof + answer[0]


def test_heads_are_those_of_nodes_of_earlier_versions() -> None:
    master, slave = pair()
    assert master.challenge[:12].hex() == "b7beacbabcadbaac7fffff00"
    assert slave.receive_data(master.challenge)[0][:8].hex() == "b7beacbabcadbaab"


def test_every_split() -> None:
    for cut in range(PROOF_BYTES):
        master, slave = pair()
        first, none = slave.receive_data(master.challenge[:cut])
        second, still_none = slave.receive_data(master.challenge[cut:])
        assert (none, still_none) == (None, None)
        proof = first + second
        early, late = master.receive_data(proof[:cut]), master.receive_data(proof[cut:])
        assert early is None
        assert late is not None
        begun = slave.receive_data(late[0][:cut])
        ended = slave.receive_data(late[0][cut:])
        assert (begun[0], ended) == (b"", (b"", b"")), cut


def test_other_secret_is_refused_by_the_master() -> None:
    master, slave = pair("another secret")
    proof, _ = slave.receive_data(master.challenge)
    with pytest.raises(HandshakeRefused, match="slave's haSharedSecret is different"):
        master.receive_data(proof)


def test_masters_answer_must_be_right_too() -> None:
    master, slave = pair()
    proof, _ = slave.receive_data(master.challenge)
    with pytest.raises(HandshakeRefused, match="master's haSharedSecret is different"):
        slave.receive_data(proof[-ANSWER_BYTES:])


def test_proof_of_another_connection_is_worth_nothing() -> None:
    master, slave = pair()
    proof, _ = slave.receive_data(master.challenge)
    with pytest.raises(HandshakeRefused):
        MasterHandshake(SECRET, b"n" * 32).receive_data(proof)


@pytest.mark.parametrize("report", [0, 1 << 40, -1])
def test_slave_without_secret_is_refused_with_its_first_report(report: int) -> None:
    master, _ = pair()
    with pytest.raises(HandshakeRefused, match="slave has no haSharedSecret"):
        master.receive_data(encode_report(report))


def test_master_without_secret_is_refused_with_its_first_frame() -> None:
    _, slave = pair()
    with pytest.raises(HandshakeRefused, match="does not ask"):
        slave.receive_data(encode_transfer_header(0, 0))


def test_plain_slave_of_ours_names_the_reason() -> None:
    master, _ = pair()
    with pytest.raises(FrameError, match="the master asks for haSharedSecret"):
        TransferDecoder().receive_data(master.challenge)


def test_apaches_slave_waits_for_a_transfer_that_never_comes() -> None:
    """Apache's slave keeps header and size as int; their sum must not overflow, or it would append its data."""
    assert 1 << 30 < CHALLENGE_SIZE + 12 < 1 << 31
