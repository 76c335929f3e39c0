"""Signatures as Apache's client makes them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.wire import signature
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.signature import Credentials, is_signed, sign, signature_of

ADA = Credentials("ada", "secret-of-ada")


def hmac_of(content: bytes, key: bytes = b"secret-of-ada") -> str:
    """HMAC-SHA1 written out, in Base64."""
    inner = hashlib.sha1(bytes(one ^ 0x36 for one in key.ljust(64, b"\0")) + content).digest()
    return base64.b64encode(hashlib.sha1(bytes(one ^ 0x5C for one in key.ljust(64, b"\0")) + inner).digest()).decode()


def test_the_values_are_signed_in_the_order_of_their_names_then_the_body() -> None:
    fields = {"topic": "T", "b": "2", "AccessKey": "ada"}
    assert signature_of(fields, b"\xffbody", "secret-of-ada") == hmac_of(b"ada2T\xffbody")


@pytest.mark.parametrize("size", [63, 64, 65])
def test_a_secret_longer_than_a_block_is_hashed_first(size: int) -> None:
    expected = base64.b64encode(hmac.digest(b"k" * size, b"T", "sha1")).decode()
    assert signature_of({"topic": "T"}, b"", "k" * size) == expected


def test_names_are_sorted_as_java_does() -> None:
    """A character outside the basic plane is a pair of surrogates there, and stands before U+FF21."""
    assert signature_of({"\uff21": "1", "\U0001f600": "2"}, b"", "secret-of-ada") == hmac_of(b"21")


def test_a_request_carries_who_sends_it() -> None:
    command = RemotingCommand.request(10, {"topic": "T"}, b"x")
    sign(command, Credentials("ada", "secret-of-ada", "token"))
    assert command.ext_fields == {
        "topic": "T",
        "AccessKey": "ada",
        "SecurityToken": "token",
        "Signature": hmac_of(b"adatokenTx"),
    }


def test_credentials_in_a_text_tell_no_secret() -> None:
    assert repr(Credentials("ada", "secret-of-ada", "token")) == "Credentials(access_key='ada')"


def test_fields_that_others_hold_too_stay_as_they_are() -> None:
    fields = {"topic": "T"}
    sign(RemotingCommand.request(10, fields), ADA)
    assert fields == {"topic": "T"}


def test_a_request_that_is_sent_again_is_signed_anew() -> None:
    command = RemotingCommand.request(10, {"topic": "T"})
    sign(command, Credentials("eve", "another"))
    sign(command, ADA)
    assert command.ext_fields == {"topic": "T", "AccessKey": "ada", "Signature": hmac_of(b"adaT")}


def test_a_request_that_was_read_leaves_with_its_signature() -> None:
    (read,) = FrameDecoder().receive_data(encode_frame(RemotingCommand.request(10, {"topic": "T"})))
    sign(read, ADA)
    (sent,) = FrameDecoder().receive_data(encode_frame(read))
    assert is_signed(sent, "secret-of-ada")


@given(st.dictionaries(st.text(min_size=1), st.text()), st.binary(), st.sampled_from(["JSON", "ROCKETMQ"]))
def test_what_was_signed_is_found_signed(fields: dict[str, str], body: bytes, kind: str) -> None:
    command = RemotingCommand.request(10, {f"x{name}": value for name, value in fields.items()}, body)
    sign(command, ADA)
    assert is_signed(command, "secret-of-ada")
    assert not is_signed(command, "another")


@pytest.mark.parametrize(
    "change",
    [
        lambda command: command.ext_fields.update(topic="U"),
        lambda command: command.ext_fields.update(more="1"),
        lambda command: command.ext_fields.pop("topic"),
        lambda command: setattr(command, "body", b"y"),
        lambda command: command.ext_fields.pop("Signature"),
        lambda command: command.ext_fields.update(Signature=""),
        lambda command: command.ext_fields.update(Signature="\u00e9"),
    ],
)
def test_whatever_is_changed_shows(change: Callable[[RemotingCommand], object]) -> None:
    command = RemotingCommand.request(10, {"topic": "T"}, b"x")
    sign(command, ADA)
    change(command)
    assert is_signed(command, "secret-of-ada") is False


@pytest.mark.parametrize(("version", "taken"), [(399, True), (400, False)], ids=["4.9.3", "later"])
def test_older_clients_mark_a_query_after_they_signed_it(version: int, taken: bool) -> None:
    command = RemotingCommand.request(12, {"topic": "T"})
    sign(command, ADA)
    command.ext_fields["_UNIQUE_KEY_QUERY"] = "true"
    command.version = version
    assert is_signed(command, "secret-of-ada") is taken


def test_the_secret_is_not_shown() -> None:
    assert repr(Credentials("ada", "planted", "planted")) == "Credentials(access_key='ada')"


def test_standard_library_agrees() -> None:
    assert hmac_of(b"x") == base64.b64encode(hmac.digest(b"secret-of-ada", b"x", "sha1")).decode()


def test_fields_of_other_names_in_as_many_are_signed_by_their_own_order() -> None:
    secret = "secret-of-ada"
    for fields in ({"b": "2", "a": "1"}, {"b": "2", "c": "1"}, {"b": "2", "a": "1", "Signature": "x"}, {"a": "1"}):
        values = [fields[name] for name in sorted(fields) if name != "Signature"]
        assert signature_of(fields, b"", secret) == hmac_of("".join(values).encode())


def test_keys_longer_than_a_block_are_taken_as_their_digest() -> None:
    key = "k" * 65
    assert signature_of({"a": "1"}, b"", key) == hmac_of(b"1", hashlib.sha1(key.encode()).digest())


def test_a_sender_without_the_right_signature_leaves_nothing_behind() -> None:
    """A stranger chooses names as long and as many as a header holds."""
    known, latest = dict(signature._VALUES), dict(signature._LATEST)
    for number in range(20):
        fields = {f"stranger-{number}": "x", signature.ACCESS_KEY: "ada", signature.SIGNATURE: "wrong"}
        assert not signature.is_signed(RemotingCommand(10, ext_fields=fields), "secret")
    assert (known, latest) == (signature._VALUES, signature._LATEST)
    long = RemotingCommand(10, ext_fields={"n" * 5000: "x"})
    signature.sign(long, signature.Credentials("ada", "secret"))
    assert signature.is_signed(long, "secret")
    assert known == signature._VALUES
