"""Signed sends that come many at a time: rights and signatures of each are those of sends that come one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.access import ROOT, Signer, allow, asking_broker, make_user
from tests.support.broker import BrokerInMemory, Peer
from tests.twisted_mq.broker.processors.test_send_columns import Sent, frame, messages, taken_by
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire import signature
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.signature import SIGNATURE, Credentials, sign

ADA, BOB = Credentials("ada", "secret"), Credentials("bob", "secret")
ENCODINGS = pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
CODES = pytest.mark.parametrize("code", [10, 310])


def signed(number: int, message: Sent, credentials: Credentials | None, wrong: str = "") -> bytes:
    """A send's frame; `wrong` replaces the begin of its signature."""
    (command,) = FrameDecoder().receive_data(frame(number, message))
    if credentials is not None:
        sign(command, credentials)
    if wrong:
        given = command.ext_fields[SIGNATURE]
        command.replace_fields({**command.ext_fields, SIGNATURE: wrong + given[len(wrong) :]})
    return encode_frame(command)


def broker_of(folder: Path, *, columns: bool = True) -> BrokerInMemory:
    """A broker where ada may send to T and U, and bob to U alone."""
    folder.mkdir(exist_ok=True)
    broker = asking_broker(str(folder))
    broker.controller.random.seed(0)
    if not columns:
        broker.traffic.streaks = None
    root = Signer(broker, ROOT)
    for name, topics in (("ada", "TU"), ("bob", "U")):
        make_user(root, name)
        for topic in topics:
            allow(root, name, f"Topic:{topic}", "Pub")
    return broker


def message(topic: str = "T", code: int = 310, serialize_type: int = 0, body: bytes = b"hello") -> Sent:
    return topic, 0, code, "TAGS\x01A\x02WAIT\x01true\x02", body, serialize_type


def codes(peer: Peer, *reads: bytes) -> list[int]:
    """The codes of the answers to these reads."""
    for read in reads:
        peer.channel.dataReceived(read)
    return [answer.code for answer in peer.received()]


def stored(broker: BrokerInMemory, topic: str = "T") -> list[bytes]:
    result = broker.store.get_message(topic, 0, 0, 999, 1 << 20, None)
    return [bytes(record) for record in result.records]


senders = st.sampled_from([ADA, ADA, ADA, BOB, None, Credentials("ada", "guessed"), Credentials("eve", "secret")])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(messages, senders, st.integers(1, 12), st.sampled_from(["", "", "", "x", "AAAA", "="])),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
def test_what_comes_of_any_sends_is_what_comes_of_them_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[Sent, Credentials | None, int, str]], cuts: list[int]
) -> None:
    frames = [
        signed(100 * run + number, sent, by, wrong if by is not None and number == times // 2 else "")
        for run, (sent, by, times, wrong) in enumerate(runs)
        for number in range(times)
    ]
    reads = []
    for cut in cuts:
        reads.append(b"".join(frames[:cut]))
        frames = frames[cut:]
    reads.append(b"".join(frames))
    outcomes: list[Any] = []
    for columns in (True, False):
        broker = broker_of(tmp_path_factory.mktemp("broker"), columns=columns)
        peer = broker.connect()
        answers = []
        for read in reads:
            peer.channel.dataReceived(read)
            answers.append(peer.transport.value())
            peer.transport.clear()
        statistics = broker.controller.statistics
        outcomes.append((answers, stored(broker, "T"), stored(broker, "U"), statistics.put_messages))
    assert outcomes[0] == outcomes[1]


@CODES
@ENCODINGS
def test_signed_sends_are_taken_once_their_header_and_rights_are_known(
    tmp_path: Path, code: int, serialize_type: int
) -> None:
    broker = broker_of(tmp_path)
    frames = [signed(number, message("T", code, serialize_type), ADA) for number in range(40)]
    assert codes(broker.connect(), b"".join(frames[:20]), b"".join(frames[20:])) == [0] * 40
    taken, left = taken_by(broker)
    assert taken >= 34
    assert "its rights or signature are checked" not in left


@pytest.mark.parametrize("place", [0, 1, 7, 18, 19])
@ENCODINGS
def test_a_wrong_signature_among_right_ones_is_refused_and_nothing_else(
    tmp_path: Path, serialize_type: int, place: int
) -> None:
    broker = broker_of(tmp_path)
    peer = broker.connect()
    known = [signed(number, message(serialize_type=serialize_type), ADA) for number in range(8)]
    assert codes(peer, b"".join(known)) == [0] * 8
    sent = [
        signed(
            100 + number, message(serialize_type=serialize_type, body=b"%05d" % number), ADA, "AAAA" * (number == place)
        )
        for number in range(20)
    ]
    expected = [0] * 20
    expected[place] = ResponseCode.NO_PERMISSION
    assert codes(peer, b"".join(sent)) == expected
    bodies = b"".join(stored(broker)[8:])
    assert [b"%05d" % number in bodies for number in range(20)] == [number != place for number in range(20)]


def test_an_odd_value_has_no_signature_checked_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_of(tmp_path)
    peer = broker.connect()
    assert codes(peer, b"".join(signed(number, message(), ADA) for number in range(8))) == [0] * 8
    frames = [signed(100 + number, message(), ADA) for number in range(40)]
    frames[-1] = signed(200, message(body=b""), ADA)
    computed: list[bytes] = []
    digest = signature._digest

    def counted(text: bytes, *key: Any) -> bytes:
        computed.append(text)
        return digest(text, *key)

    monkeypatch.setattr(signature, "_digest", counted)
    answers = codes(peer, b"".join(frames))
    assert answers[:-1] == [0] * 39
    assert 40 <= len(computed) <= 2 * 40


def test_a_body_that_was_not_signed_is_refused(tmp_path: Path) -> None:
    broker = broker_of(tmp_path)
    peer = broker.connect()
    frames = [signed(number, message(), ADA) for number in range(20)]
    frames[15] = frames[15].replace(b"hello", b"jello")
    answers = codes(peer, b"".join(frames))
    assert [number for number, code in enumerate(answers) if code] == [15]
    assert taken_by(broker)[0] >= 12


@pytest.mark.parametrize("change", ["policy", "user"])
def test_rights_that_were_taken_away_are_gone_with_the_next_read(tmp_path: Path, change: str) -> None:
    broker = broker_of(tmp_path)
    peer, root = broker.connect(), Signer(broker, ROOT)
    frames = [signed(number, message(), ADA) for number in range(40)]
    assert codes(peer, b"".join(frames[:20])) == [0] * 20
    if change == "policy":
        removed = root.ask(RequestCode.AUTH_DELETE_ACL, {"subject": "User:ada", "policyType": "Custom"})
    else:
        removed = root.ask(RequestCode.AUTH_DELETE_USER, {"username": "ada"})
    assert removed == (0, None)
    assert codes(peer, b"".join(frames[20:])) == [ResponseCode.NO_PERMISSION] * 20
    assert len(stored(broker)) == 20


def test_a_new_secret_counts_from_the_next_read_on(tmp_path: Path) -> None:
    broker = broker_of(tmp_path)
    peer, root = broker.connect(), Signer(broker, ROOT)
    frames = [signed(number, message(), ADA) for number in range(20)]
    assert codes(peer, b"".join(frames)) == [0] * 20
    changed = root.ask(RequestCode.AUTH_UPDATE_USER, {"username": "ada"}, b'{"password":"other"}')
    assert changed == (0, None)
    assert codes(peer, b"".join(frames)) == [ResponseCode.NO_PERMISSION] * 20
    after = [signed(number, message(), Credentials("ada", "other")) for number in range(20)]
    assert codes(peer, b"".join(after)) == [0] * 20
    assert taken_by(broker)[0] >= 30


def test_rights_of_one_topic_are_none_of_another(tmp_path: Path) -> None:
    broker = broker_of(tmp_path)
    peer = broker.connect()
    allowed = [signed(number, message("U"), BOB) for number in range(20)]
    refused = [signed(number, message("T"), BOB) for number in range(20)]
    assert codes(peer, b"".join(allowed), b"".join(refused)) == [0] * 20 + [ResponseCode.NO_PERMISSION] * 20
    assert stored(broker) == []


@ENCODINGS
@pytest.mark.parametrize(("by", "refused"), [(ADA, ""), (BOB, "T")], ids=["all", "one"])
def test_rights_of_topics_that_take_turns_are_those_of_each(
    tmp_path: Path, serialize_type: int, by: Credentials, refused: str
) -> None:
    broker = broker_of(tmp_path)
    topics = "UT" * 20
    frames = [signed(number, message(topic, 310, serialize_type), by) for number, topic in enumerate(topics)]
    answers = codes(broker.connect(), b"".join(frames[:20]), b"".join(frames[20:]))
    assert answers == [ResponseCode.NO_PERMISSION if topic in refused else 0 for topic in topics]
    assert len(stored(broker)) == (0 if refused else 20)
    taken, _ = taken_by(broker)
    assert taken >= (0 if refused else 32)


def test_rights_of_an_address_are_none_of_another(tmp_path: Path) -> None:
    broker = broker_of(tmp_path)
    root = Signer(broker, ROOT)
    make_user(root, "eve")
    allow(root, "eve", "Topic:T", "Pub", source="127.0.0.1")
    frames = [signed(number, message(), Credentials("eve", "secret")) for number in range(20)]
    assert codes(broker.connect(), b"".join(frames)) == [0] * 20
    assert codes(broker.connect(host="127.0.0.2"), b"".join(frames)) == [ResponseCode.NO_PERMISSION] * 20
    assert len(stored(broker)) == 20


def test_a_connection_proves_its_account_before_its_sends_are_taken_together(tmp_path: Path) -> None:
    broker = broker_of(tmp_path)
    frames = [signed(number, message(), ADA) for number in range(40)]
    for _ in range(2):
        peer = broker.connect()
        assert codes(peer, b"".join(frames)) == [0] * 40
        assert peer.channel.account == "ada"


def test_signed_sends_are_taken_by_a_broker_that_checks_nothing() -> None:
    broker = BrokerInMemory()
    frames = [signed(number, message(), ADA) for number in range(40)]
    assert codes(broker.connect(), b"".join(frames)) == [0] * 40
    assert taken_by(broker)[0] >= 34


def test_a_field_of_another_code_is_refused_however_many_come(tmp_path: Path) -> None:
    broker = broker_of(tmp_path)
    peer = broker.connect()
    frames = []
    for number in range(20):
        (command,) = FrameDecoder().receive_data(frame(number, message()))
        command.replace_fields({**command.ext_fields, "subscription": "*"})
        sign(command, ADA)
        frames.append(encode_frame(command))
    assert codes(peer, b"".join(frames)) == [ResponseCode.NO_PERMISSION] * 20
    assert stored(broker) == []


@ENCODINGS
@pytest.mark.parametrize("asked", ["DELAY\x011\x02", "TIMER_DELAY_SEC\x015\x02", "TRAN_MSG\x01true\x02"])
def test_signed_sends_that_wait_are_taken_and_wrong_ones_refused(
    tmp_path: Path, asked: str, serialize_type: int
) -> None:
    found = []
    for columns in (True, False):
        broker = broker_of(tmp_path / str(columns), columns=columns)
        peer = broker.connect()
        waits: Sent = ("T", 0, 310, f"TAGS\x01A\x02{asked}", b"hello", serialize_type)
        right = [signed(number, waits, ADA) for number in range(20)]
        mixed = [signed(number, waits, ADA if number < 40 else BOB, "x" * (number == 30)) for number in range(20, 60)]
        found.append((codes(peer, b"".join(right[:10]), b"".join(right[10:])), codes(peer, b"".join(mixed))))
        assert (taken_by(broker)[0] >= 10) is columns
    assert found[0] == found[1]
    good, bad = int(ResponseCode.SUCCESS), int(ResponseCode.NO_PERMISSION)
    assert found[0][0] == [good] * 20
    assert found[0][1] == [bad if number >= 40 or number == 30 else good for number in range(20, 60)]
