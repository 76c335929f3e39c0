"""Frames: every recorded one reads and writes back, any split gives the same commands, nothing passes the limits."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.captures import SCENARIOS, frame_index, frames
from twisted_mq.protocol.codes import LANGUAGES
from twisted_mq.protocol.errors import CommandError, FrameError, FrameTooLarge
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.framing import FRAME, MAX_FRAME_BYTES, FrameDecoder, encode_frame, frame

ROUTE_QUERY = bytes.fromhex("000000100000000c") + b'{"code":105}'


def as_recorded(command: RemotingCommand) -> dict[str, Any]:
    """Return the entry of a frame in the recording's index, as far as the command has the fields."""
    return {
        "code": command.code,
        "opaque": command.opaque,
        "flag": command.flag,
        "language": command.language,
        "version": command.version,
        "serialize": SerializeType(command.serialize_type).name,
        "body_length": len(command.body),
        "request_or_response": "response" if command.is_response else "request",
        "oneway": command.is_one_way,
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_recorded_frame_reads_as_the_recording_says(scenario: str) -> None:
    commands = FrameDecoder().receive_data(frames(scenario))
    index = frame_index(scenario)
    assert len(commands) == len(index)
    for command, line in zip(commands, index, strict=True):
        found = as_recorded(command)
        assert found == {name: line[name] for name in found}, line["index"]
        assert all(isinstance(value, str) for value in command.ext_fields.values())


def without_raw(command: RemotingCommand) -> RemotingCommand:
    """The same command as its maker would have built it: fields as a map of texts."""
    fields = dict(command.ext_fields)
    made = RemotingCommand(
        command.code,
        command.opaque,
        command.flag,
        command.language,
        command.version,
        command.remark,
        command.body,
        command.serialize_type,
        names_serialize_type=command.names_serialize_type,
        ext_fields=fields,
    )
    assert made.raw_ext_fields is None
    return made


def header_of(data: bytes) -> tuple[int, bytes, bytes]:
    """(serialize type, header, body) of one frame, read by the declared layout."""
    parsed = FRAME.parse(data)
    return parsed.serialize_type, parsed.header, parsed.body


def as_texts(header: dict[str, Any]) -> dict[str, Any]:
    """The header with numbers and booleans of extFields as text, and an empty or absent extFields left out."""
    fields = header.pop("extFields", None)
    if fields:
        header["extFields"] = {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()
        }
    if isinstance(header["language"], int):
        header["language"] = LANGUAGES[header["language"]]
    return header


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_recorded_frame_encodes_again(scenario: str) -> None:
    recorded = frames(scenario)
    commands = FrameDecoder().receive_data(recorded)
    for command, line in zip(commands, frame_index(scenario), strict=True):
        original = recorded[line["offset"] : line["offset"] + line["length"]]
        kind, header, body = header_of(original)
        assert FRAME.build({"serialize_type": kind, "header": header, "body": body}) == original
        again = encode_frame(command)
        if kind == SerializeType.ROCKETMQ:
            assert again == original
            made = encode_frame(without_raw(command))
            (read,) = FrameDecoder().receive_data(made)
            assert read.ext_fields == command.ext_fields
            # a signed request of Apache's client names the fields of its header twice
            assert scenario == "acl_signed" or made == original
        else:
            again_kind, again_header, again_body = header_of(again)
            assert (again_kind, again_body) == (kind, body)
            assert json.loads(again_header) == json.loads(header)
            made_header = json.loads(header_of(encode_frame(without_raw(command)))[1])
            assert made_header == as_texts(json.loads(header))


def test_the_recordings_hold_both_encodings_and_other_languages() -> None:
    kinds, languages = set(), set()
    for scenario in ("rocketmq_serialized", "cpp_client", "producer_sync"):
        for line in frame_index(scenario):
            kinds.add(line["serialize"])
            languages.add(line["language"])
    assert kinds == {"JSON", "ROCKETMQ"}
    assert {"JAVA", "CPP"} <= languages


def recorded_stream(scenario: str, most: int) -> bytes:
    """The first frames of a scenario, up to `most` bytes."""
    lines = [line for line in frame_index(scenario) if line["offset"] + line["length"] <= most]
    return frames(scenario)[: lines[-1]["offset"] + lines[-1]["length"]]


def same(first: list[RemotingCommand], second: list[RemotingCommand]) -> bool:
    return [encode_frame(c) for c in first] == [encode_frame(c) for c in second]


@pytest.mark.parametrize("scenario", ["producer_sync", "rocketmq_serialized", "cpp_client"])
def test_a_stream_may_come_byte_by_byte(scenario: str) -> None:
    stream = recorded_stream(scenario, 6000)
    whole = FrameDecoder().receive_data(stream)
    decoder = FrameDecoder()
    found: list[RemotingCommand] = []
    for position in range(len(stream)):
        found += decoder.receive_data(stream[position : position + 1])
    assert len(whole) > 5
    assert same(found, whole)
    assert decoder.incomplete_bytes == 0


@given(st.sampled_from(["producer_sync", "rocketmq_serialized"]), st.lists(st.integers(0, 4000), max_size=30))
def test_any_split_gives_the_same_commands(scenario: str, cuts: list[int]) -> None:
    stream = recorded_stream(scenario, 4000)
    borders = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    decoder = FrameDecoder()
    found: list[RemotingCommand] = []
    for start, end in itertools.pairwise(borders):
        found += decoder.receive_data(stream[start:end])
    assert same(found, FrameDecoder().receive_data(stream))


def test_the_example_of_the_layout_reads() -> None:
    (command,) = FrameDecoder().receive_data(ROUTE_QUERY)
    assert (command.code, command.ext_fields, command.body) == (105, {}, b"")
    assert frame(0, b'{"code":105}', b"") == ROUTE_QUERY


@given(st.integers(0, 255), st.binary(max_size=300), st.binary(max_size=300))
def test_any_frame_is_built_as_the_layout_builds_it(kind: int, header: bytes, body: bytes) -> None:
    assert frame(kind, header, body) == FRAME.build({"serialize_type": kind, "header": header, "body": body})


def test_a_frame_of_the_limit_passes_and_one_byte_more_is_refused_at_its_length() -> None:
    fitting = frame(0, b'{"code":1}', bytes(1000 - 18))
    (command,) = FrameDecoder(1000).receive_data(fitting)
    assert len(command.body) == 982
    with pytest.raises(FrameTooLarge, match="a frame of 1001 bytes, the limit is 1000"):
        FrameDecoder(1000).receive_data((997).to_bytes(4, "big"))
    with pytest.raises(FrameTooLarge, match="a frame of 1001 bytes, the limit is 1000"):
        FrameDecoder(1000).receive_data(frame(0, b'{"code":1}', bytes(1000 - 17)))


def test_the_default_limit_is_apache_s_16_mib() -> None:
    decoder = FrameDecoder()
    assert decoder.receive_data((MAX_FRAME_BYTES - 4).to_bytes(4, "big")) == []
    with pytest.raises(FrameTooLarge):
        FrameDecoder().receive_data((MAX_FRAME_BYTES - 3).to_bytes(4, "big"))


def test_a_length_of_4_gib_takes_no_memory() -> None:
    tracemalloc.start()
    with pytest.raises(FrameTooLarge):
        FrameDecoder().receive_data(b"\xff\xff\xff\xff" + bytes(100))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_an_announced_frame_takes_memory_only_as_it_comes_even_in_single_bytes() -> None:
    decoder = FrameDecoder()
    tracemalloc.start()
    decoder.receive_data((MAX_FRAME_BYTES - 4).to_bytes(4, "big"))
    for _ in range(100_000):
        decoder.receive_data(b"xy")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoder.incomplete_bytes == 200_004
    assert held < 400_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\x03abc", "a frame length of 3, at least 4 is needed"),
        (b"\0\0\0\0", "a frame length of 0"),
        (frame(0, b'{"code":1}', b"")[:5] + b"\0\0\xff" + b'{"code":1}', "a header of 255 bytes in a frame of 14"),
        (frame(7, b"{}", b""), "serialize type 7, known are 0 and 1"),
        (frame(0, b"", b""), "JSON header"),
        (frame(0, b"{", b""), "JSON header"),
        (frame(0, b"[]", b""), "JSON header"),
        (frame(0, b"{}", b""), "missing required field `code`"),
        (frame(0, b'{"code":"1"}', b""), "Expected `int`"),
        (frame(0, b'{"code":1,"language":99}', b""), "no LanguageCode 99"),
        (frame(0, b'{"code":1,"remark":"\xff"}', b""), "JSON header"),
        (frame(0, b'{"code":1,"extFields":' + b"[" * 100_000, b""), "JSON header"),
        (frame(1, bytes(20), b""), "20 bytes, at least 21 are needed"),
        (frame(1, bytes(13) + b"\0\0\0\x05" + bytes(4), b""), "a remark of 5 bytes"),
        (frame(1, bytes(17) + b"\0\0\0\x05", b""), "extFields of 5 bytes"),
        (frame(1, b"\0\x01\x63" + bytes(18), b""), "no LanguageCode 99"),
        (frame(1, bytes(13) + b"\0\0\0\x01\xff" + bytes(4), b""), "remark"),
    ],
)
def test_a_damaged_frame_is_named_with_its_offset_after_the_sound_ones(data: bytes, reason: str) -> None:
    decoder = FrameDecoder()
    decoder.receive_data(ROUTE_QUERY)
    with pytest.raises(FrameError, match=reason) as caught:
        decoder.receive_data(ROUTE_QUERY + data)
    assert caught.value.offset == 2 * len(ROUTE_QUERY)
    assert [command.code for command in caught.value.commands] == [105]


def test_a_decoder_takes_nothing_after_a_damaged_frame() -> None:
    decoder = FrameDecoder()
    with pytest.raises(FrameError):
        decoder.receive_data(bytes(4))
    with pytest.raises(FrameError, match="after a damaged frame") as caught:
        decoder.receive_data(ROUTE_QUERY)
    assert caught.value.commands == []


FRAGMENTS = st.one_of(
    st.binary(max_size=30),
    st.builds(frame, st.integers(0, 2), st.binary(max_size=60), st.binary(max_size=20)),
    st.builds(
        frame,
        st.just(0),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
            lambda inner: st.dictionaries(
                st.sampled_from(["code", "flag", "language", "opaque", "remark", "extFields", "version", "x"]), inner
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
        st.binary(max_size=20),
    ),
    st.just(ROUTE_QUERY),
)


@settings(max_examples=300)
@given(st.lists(FRAGMENTS, max_size=8), st.integers(1, 40))
def test_no_bytes_raise_anything_else_or_are_held_past_the_limit(fragments: list[bytes], step: int) -> None:
    limit = 64
    decoder = FrameDecoder(limit)
    stream = b"".join(fragments)
    try:
        for start in range(0, len(stream), step):
            for command in decoder.receive_data(stream[start : start + step]):
                read_fields(command)
            assert decoder.incomplete_bytes < limit
    except FrameError as error:
        assert 0 <= error.offset <= len(stream)
        assert decoder.incomplete_bytes == 0


def read_fields(command: RemotingCommand) -> None:
    try:
        fields = command.ext_fields
    except CommandError:
        return
    assert all(isinstance(value, str) for pair in fields.items() for value in pair)
    assert encode_frame(command)


@settings(max_examples=200)
@given(st.sampled_from(["producer_sync", "rocketmq_serialized"]), st.data())
def test_no_damaged_recording_raises_anything_else(scenario: str, data: st.DataObject) -> None:
    stream = bytearray(recorded_stream(scenario, 3000))
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    commands: list[RemotingCommand] = []
    try:
        commands = FrameDecoder().receive_data(bytes(stream))
    except FrameError as error:
        commands = error.commands
    for command in commands:
        read_fields(command)
