import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from twisted_mq.cli.frames import DamagedBytes, frames, read_frames
from twisted_mq.protocol.wire.command import RemotingCommand, SerializeType
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES, encode_frame, frame

CAPTURES = Path(__file__).parents[3] / "interop" / "captures" / "remoting"
KEYS_OF_CAPTURES = {
    "offset": "offset",
    "length": "length",
    "code": "code",
    "flag": "flag",
    "language": "language",
    "version": "version",
    "opaque": "opaque",
    "serialize": "serialize",
    "bodyLength": "body_length",
}


def an_answer(serialize_type: int = SerializeType.JSON) -> bytes:
    command = RemotingCommand(
        17, 5, 1, remark="no route", body=b"ab", serialize_type=serialize_type, ext_fields={"topic": "T"}
    )
    return encode_frame(command)


def described(offset: int, data: bytes, serialize: str = "JSON") -> dict:
    return {
        "offset": offset,
        "length": len(data),
        "code": 17,
        "flag": 1,
        "language": "PYTHON",
        "version": 479,
        "opaque": 5,
        "serialize": serialize,
        "remark": "no route",
        "extFields": {"topic": "T"},
        "bodyLength": 2,
    }


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.frames")), ids=lambda path: path.stem)
def test_every_recorded_frame_is_described_as_it_was_recorded(path):
    with path.open("rb") as stream:
        found = list(read_frames(stream))
    wanted = json.loads(path.with_suffix(".json").read_text())
    assert [{key: item[key] for key in KEYS_OF_CAPTURES} for item in found] == [
        {key: item[name] for key, name in KEYS_OF_CAPTURES.items()} for item in wanted
    ]


def test_both_encodings_give_the_same_keys():
    json_frame, binary_frame = an_answer(), an_answer(SerializeType.ROCKETMQ)
    assert list(read_frames(io.BytesIO(json_frame + binary_frame))) == [
        described(0, json_frame),
        described(len(json_frame), binary_frame, "ROCKETMQ"),
    ]


def test_an_unreadable_header_costs_only_its_own_frame():
    good = an_answer()
    bad = frame(0, b"{no json", b"")
    found = list(read_frames(io.BytesIO(good + bad + good)))
    assert (found[0], found[2]) == (described(0, good), described(len(good) + len(bad), good))
    assert (found[1].offset, found[1].reason.startswith("JSON header: ")) == (len(good), True)


def test_fields_that_can_not_be_read_are_named():
    data = frame(0, b'{"code":1,"extFields":["a"]}', b"")
    (found,) = read_frames(io.BytesIO(data))
    assert (found.offset, found.reason.startswith("extFields: ")) == (0, True)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"\0\0", "the length field is incomplete: 2 of 4 bytes"),
        (b"\0\0\0\x10abc", "the frame is incomplete: 7 of 20 bytes"),
        (b"\x7f\xff\xff\xff", f"a frame of {0x7FFFFFFF + 4} bytes, the limit is {MAX_FRAME_BYTES}"),
        (b"\xff\xff\xff\xff", f"a frame of {0xFFFFFFFF + 4} bytes, the limit is {MAX_FRAME_BYTES}"),
        (b"\0\0\0\x02ab", "a frame length of 2, at least 4 is needed"),
        (b"\0\0\0\x04\x07\0\0\0", "serialize type 7, known are 0 and 1"),
    ],
)
def test_damage_names_offset_and_reason(tail, reason):
    good = an_answer()
    assert list(read_frames(io.BytesIO(good + tail))) == [described(0, good), DamagedBytes(len(good), reason)]


def test_the_command_prints_what_it_can_and_exits_1(tmp_path):
    path = tmp_path / "cut.frames"
    good = an_answer()
    path.write_bytes(good + b"\0\0\0\x10abc")
    result = CliRunner().invoke(frames, [str(path)])
    assert (result.exit_code, result.stdout) == (1, json.dumps(described(0, good), separators=(",", ":")) + "\n")
    assert result.stderr == f"mq frames: {path} at offset {len(good)}: the frame is incomplete: 7 of 20 bytes\n"


def test_an_empty_file_has_no_frames(tmp_path):
    path = tmp_path / "empty.frames"
    path.touch()
    result = CliRunner().invoke(frames, [str(path)])
    assert (result.exit_code, result.output) == (0, "")
