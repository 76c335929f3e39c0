"""Requests that have a shape are the commands that any other way of reading them gives; whatever is odd has none."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.errors import CommandError, FrameError, FrameTooLarge
from twisted_mq.protocol.wire import framing
from twisted_mq.protocol.wire.command import WITHOUT_REMARK, RemotingCommand, SerializeType
from twisted_mq.protocol.wire.extfields import encode_binary_fields
from twisted_mq.protocol.wire.framing import HEAD_BYTES, FrameDecoder, encode_frame, frame
from twisted_mq.protocol.wire.shapes import (
    LEARN_AGAIN,
    LEARN_EVERY,
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    MAX_MARKS_OF_PEER,
    MAX_SHAPES_OF_MARK,
    MAX_STREAK,
    MIN_STREAK,
    Shapes,
    Streak,
    Varying,
    cutter,
    one_by_one,
)

CODE = 310
VARYING = {CODE: Varying(("e", "g"), "i", without=("DELAY",), fixed=("WAIT",))}
END, ANY = 37, 11
WITH_ENDS = {**VARYING, END: Varying(("o",), flag=2, is_unordered=True)}


def send(number: int = 1, serialize_type: int = 0, *, body: bytes = b"hello", **fields: str) -> bytes:
    given = {"a": "P", "b": "T", "e": str(number % 4), "g": str(1_795_217_217_000 + number),
             "i": f"UNIQ_KEY\x01C0A8{number:08X}\x02WAIT\x01true\x02", **fields}  # fmt: skip
    return encode_frame(
        RemotingCommand(CODE, 1000 + number, 0, "JAVA", 479, None, body, serialize_type, ext_fields=given)
    )


def end(number: int = 1, serialize_type: int = 0) -> bytes:
    """An unordered request."""
    fields = {"a": "P", "o": str(number)}
    return encode_frame(
        RemotingCommand(END, 1000 + number, 2, "JAVA", 479, None, b"", serialize_type, ext_fields=fields)
    )


def any_other(number: int = 1) -> bytes:
    """A request without a shape."""
    return encode_frame(RemotingCommand(ANY, 1000 + number, language="JAVA", ext_fields={"topic": "T"}))


def knowing(serialize_type: int = 0) -> FrameDecoder:
    """A decoder that knows the shapes of sends and of unordered requests."""
    decoder = FrameDecoder(shapes=Shapes(WITH_ENDS))
    for frame_of in (send, end):
        decoder.receive(b"".join(frame_of(number, serialize_type) for number in (1, 2)))
    return decoder


def streaks(received: Sequence[RemotingCommand | Streak]) -> list[int]:
    """Return the length of each streak, 0 for a command."""
    return [len(one) if isinstance(one, Streak) else 0 for one in received]


def told(command: RemotingCommand) -> tuple[object, ...]:
    return (command.code, command.opaque, command.flag, command.language, command.version, command.remark, command.body,
            command.serialize_type, command.ext_fields, command.names_serialize_type)  # fmt: skip


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_sends_of_a_length_that_came_twice_come_in_streaks_and_say_what_they_said(serialize_type: int) -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    frames = [
        send(number, serialize_type, body=b"x" * (1 + number % 3)) for number in range(2 + MAX_STREAK + MIN_STREAK)
    ]
    received = decoder.receive(b"".join(frames))
    assert streaks(received) == [0, 0, MAX_STREAK, MIN_STREAK]
    assert [encode_frame(command) for command in one_by_one(received)] == frames


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_sends_come_in_streaks_up_to_the_largest_number_of_a_request(serialize_type: int) -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    last = (1 << 31) - 1 - 1000
    frames = [send(number, serialize_type) for number in range(last - 2 - MIN_STREAK, last)]
    received = decoder.receive(b"".join(frames))
    assert streaks(received) == [0, 0, MIN_STREAK]
    assert [encode_frame(command) for command in one_by_one(received)] == frames


def test_a_frame_past_the_limit_ends_a_streak_of_different_bodies() -> None:
    decoder = FrameDecoder(len(send()) + 100, Shapes(VARYING))
    frames = [send(number, body=b"x" * (1 + number)) for number in range(1, 1 + MIN_STREAK)]
    decoder.receive(b"".join(frames) * 5)
    with pytest.raises(FrameTooLarge) as raised:
        decoder.receive(b"".join(frames) + send(body=b"x" * 200) + send())
    assert streaks(raised.value.commands) == [MIN_STREAK]


def test_parts_are_fixed_and_vary_in_turn() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    *_, streak = decoder.receive(b"".join(send(number) for number in range(1, 3 + MIN_STREAK)))
    assert isinstance(streak, Streak)
    family, row = streak.family, streak.rows[0]
    assert family.names == ("e", "g", ("i", "UNIQ_KEY"), "")
    assert [row[family.place(name)] for name in family.names] == [b"3", b"1795217217003", b"C0A800000003", b"1003"]
    assert len({row[::2] for row in streak.rows}) == 1
    assert b"".join(row) == send(3)


def rows_of(bodies: Sequence[bytes]) -> Streak:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    decoder.receive(send(body=bodies[0]) * 20)
    frames = [send(number, body=body) for number, body in enumerate(bodies, 3)]
    (streak,) = decoder.receive(b"".join(frames))
    assert isinstance(streak, Streak)
    assert [b"".join(row) for row in streak.rows] == frames
    return streak


@pytest.mark.parametrize("body", [b"", b"hello"])
def test_columns_of_requests_that_are_alike_say_so(body: bytes) -> None:
    alike, other = rows_of([body] * 6), rows_of([body, body, body, b"longer", body, body])
    assert (alike.columns(0, 6), other.columns(0, 6)[1]) == (([*zip(*alike.rows, strict=True)], True), False)
    assert alike.columns(1, 4) == ([*zip(*alike.rows[1:4], strict=True)], True)
    assert other.columns(1, 4) == ([*zip(*other.rows[1:4], strict=True)], False)


def test_requests_without_a_body_are_part_of_a_streak_with_others() -> None:
    assert len(rows_of([b"x", b"", b"xy", b"", b"x", b"xyz"])) == 6


def test_requests_that_are_alike_say_so_before_others_of_another_code() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    decoder.receive(send() * 20)
    others = encode_frame(RemotingCommand(11, 1, language="JAVA", ext_fields={"topic": "T"})) * 20
    (streak, *_) = decoder.receive(send() * 6 + others)
    assert isinstance(streak, Streak)
    _, are_alike = streak.columns(0, 6)
    assert (len(streak), are_alike) == (6, True)


@pytest.mark.parametrize("place", [1, 2, 5])
def test_rows_end_before_a_frame_that_has_the_same_lengths_and_is_no_send_of_the_shape(place: int) -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    frames = [send(number) for number in range(3, 14)]
    frames[place + 4] = frames[place + 4].replace(b'"P"', b'"U"')
    received = decoder.receive(b"".join([send(1), send(2), *frames]))
    assert streaks(received)[:4] == [0, 0, place + 4, 0]
    assert [encode_frame(command) for command in one_by_one(received)][2:] == frames


def test_streak_of_two_shapes_is_no_longer_than_one_of_one() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    for queue in ("1", "10"):
        decoder.receive(send(1, e=queue) * 4 * MAX_STREAK)
    received = decoder.receive(send(1, e="1") * MIN_STREAK + send(1, e="10") * MAX_STREAK)
    assert streaks(received) == [MAX_STREAK, MIN_STREAK]


def test_streak_of_unordered_requests_of_two_shapes_is_no_longer_than_one_of_one() -> None:
    decoder = knowing()
    for number in (1, 10):
        decoder.receive(end(number) * 4 * MAX_STREAK)
    received = decoder.receive(send() * MIN_STREAK + end(1) * MIN_STREAK + end(10) * MAX_STREAK)
    assert streaks(received) == [MIN_STREAK, MAX_STREAK, MIN_STREAK]


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_values_of_other_lengths_are_of_the_same_family(serialize_type: int) -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    kinds: list[dict[str, Any]] = [{"e": "1"}, {"e": "10"}, {"e": "1", "i": "UNIQ_KEY\x01AB\x02WAIT\x01true\x02"}]
    assert streaks(decoder.receive(b"".join(send(1, serialize_type, **kind) for kind in kinds) * 2)) == [0] * 6
    frames = [send(number, serialize_type, **kinds[number % 3]) for number in range(7)]
    others = [send(number, serialize_type, b="U") for number in range(2)]
    assert streaks(decoder.receive(b"".join(frames + others))) == [7, 0, 0]


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_other_fixed_values_are_of_another_family(serialize_type: int) -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    frames = [[send(number, serialize_type, b=topic) for number in range(MIN_STREAK)] for topic in ("T", "Other")]
    decoder.receive(b"".join(frames[0][:2] + frames[1][:2]))
    received = decoder.receive(b"".join(frames[0] + frames[1]))
    assert streaks(received) == [MIN_STREAK, MIN_STREAK]
    assert [encode_frame(command) for command in one_by_one(received)] == frames[0] + frames[1]


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_texts_vary_where_a_header_has_them(serialize_type: int) -> None:
    decoder = FrameDecoder(shapes=Shapes({CODE: Varying(("e", "g"), texts=("a", "i", "missing"))}))
    decoder.receive(send(1, serialize_type, i="text") * 2)
    frames = [send(number, serialize_type, a="PQR"[number % 3], i=f"txt{number}") for number in range(6)]
    (streak,) = decoder.receive(b"".join(frames))
    assert isinstance(streak, Streak)
    assert sorted(map(str, streak.family.names)) == ["", "a", "e", "g", "i"]
    assert [row[streak.family.place("i")] for row in streak.rows] == [b"txt%d" % number for number in range(6)]
    assert [encode_frame(command) for command in one_by_one([streak])] == frames


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_unordered_requests_and_sends_between_each_other_come_in_a_streak_each(serialize_type: int) -> None:
    pairs = [(end(number, serialize_type), send(number, serialize_type)) for number in range(1, 7)]
    received = knowing(serialize_type).receive(b"".join(one for pair in pairs for one in pair))
    assert streaks(received) == [6, 6]
    assert [encode_frame(command) for command in one_by_one(received)] == [
        one for kind in (0, 1) for one in [pair[kind] for pair in pairs]
    ]


def test_other_requests_are_processed_behind_all_that_came_before_them() -> None:
    """So a producer that says good-bye has ended its transactions."""
    frames = [end(1), send(1)] * 5 + [any_other()] + [send(2), end(2)] * 5
    received = knowing().receive(b"".join(frames))
    assert streaks(received) == [5, 5, 0, 5, 5]
    assert [one.family.code for one in received if isinstance(one, Streak)] == [END, CODE, CODE, END]


def test_ordered_requests_of_two_families_keep_their_order_with_unordered_ones_between_them() -> None:
    decoder = knowing()
    decoder.receive(send(b="U") * 20)
    frames = [send(), end(), send(b="U"), end()] * 5
    codes = [command.ext_fields.get("b") for command in one_by_one(decoder.receive(b"".join(frames)))]
    assert [code for code in codes if code] == ["T", "U"] * 5


@pytest.mark.parametrize("few", [1, MIN_STREAK - 1])
def test_few_unordered_requests_among_sends_are_commands_where_the_first_of_them_came(few: int) -> None:
    frames = [send(1), *([end(2), send(2)] * few), *([send(3)] * MIN_STREAK)]
    received = knowing().receive(b"".join(frames))
    assert streaks(received) == [1 + few + MIN_STREAK, *[0] * few]
    assert [command.code for command in received[1:] if isinstance(command, RemotingCommand)] == [END] * few


def test_damage_of_one_among_few_keeps_what_comes_before_it_and_nothing_behind() -> None:
    decoder = knowing()
    bad = end().replace(b'"opaque":1001', b'"opaque":0001')
    with pytest.raises(FrameError) as raised:
        decoder.receive(b"".join([send(), end(), send(), bad, *[send()] * MIN_STREAK, any_other()]))
    assert streaks(raised.value.commands) == [2 + MIN_STREAK, 0]
    with pytest.raises(FrameError):
        decoder.receive(send())


def test_damage_of_one_among_few_is_told_where_a_later_frame_is_damaged_too() -> None:
    """The first damage is the one that counts, and no streak is shorter than MIN_STREAK."""
    bad = send().replace(b'"opaque":1001', b'"opaque":0001')
    worse = send(serialize_type=1)
    worse = worse[:4] + b"\x07" + worse[5:]
    with pytest.raises(FrameError, match="malformed") as raised:
        knowing().receive(b"".join([send(), bad, worse, send()]))
    assert streaks(raised.value.commands) == [0]


def test_fewer_than_a_streak_are_commands() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    decoder.receive(send() * 2)
    assert streaks(decoder.receive(send())) == [0]
    assert streaks(decoder.receive(send() * (MIN_STREAK - 1))) == [0] * (MIN_STREAK - 1)
    assert streaks(decoder.receive(send() * MIN_STREAK)) == [MIN_STREAK]


@pytest.mark.parametrize("count", [MIN_STREAK - 1, MIN_STREAK])
def test_a_part_that_is_not_what_it_has_to_be_damages_the_stream(count: int) -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    decoder.receive(send() * 2)
    data = send() * (count - 1) + send().replace(b'"opaque":1001', b'"opaque":0001')
    if count < MIN_STREAK:
        with pytest.raises(FrameError) as raised:
            decoder.receive(data + send(b="U"))
        assert [command.opaque for command in raised.value.commands] == [1001] * (count - 1)
        return
    (streak,) = decoder.receive(data)
    assert isinstance(streak, Streak)
    assert streak.plain(0).opaque == 1001
    with pytest.raises(CommandError):
        streak.plain(count - 1)


@pytest.mark.parametrize("together", [1, 2, 7])
def test_few_frames_are_cut_in_vain_where_others_of_their_length_come_between(together: int) -> None:
    cut: list[object] = []

    def counted(lengths: tuple[int, ...], *more: int) -> SimpleNamespace:
        made = cutter(lengths, *more)

        def iter_unpack(data: memoryview) -> list[tuple[Any, ...]]:
            rows = [*made.iter_unpack(data)]
            cut.extend(rows)
            return rows

        return SimpleNamespace(unpack_from=made.unpack_from, iter_unpack=iter_unpack)

    decoder = FrameDecoder(shapes=Shapes(VARYING))
    decoder.receive(send() * 2)
    frames = [send(number, b="TU"[number % (together + 1) == 0]) for number in range(400)]
    with patch.object(framing, "cutter", counted):
        received = decoder.receive(b"".join(frames))
    assert [encode_frame(command) for command in one_by_one(received)] == frames
    assert len(cut) <= 3 * len(frames)


values = st.text(st.sampled_from('09Az-_ \x01\x02"\\é\n'), max_size=3)
odd_fields = st.dictionaries(st.sampled_from("abegi"), values, max_size=2)
odd_properties = st.lists(st.tuples(st.sampled_from(["KEYS", "DELAY", "WAIT", "UNIQ_KEY", ""]), values), max_size=3)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), odd_fields, odd_properties, st.booleans(), st.binary(max_size=2)),
        min_size=6,
        max_size=20,
    ),
    st.integers(1, 400),
)
def test_any_mixture_of_frames_gives_the_commands_that_it_gives_without_shapes(sent: list[Any], cut: int) -> None:
    frames = []
    for number, fields, properties, binary, body in sent:
        fields = dict(fields)
        if properties:
            fields["i"] = "".join(f"{name}\x01{value}\x02" for name, value in properties)
        frames.append(send(number, int(binary), body=body, **fields))
    data = b"".join(frames)
    pieces = [data[start : start + cut] for start in range(0, len(data), cut)]
    decoder, usual = FrameDecoder(shapes=Shapes(VARYING)), FrameDecoder()
    assert [told(one) for piece in pieces for one in one_by_one(decoder.receive(piece))] == [
        told(one) for piece in pieces for one in usual.receive_data(piece)
    ]


@given(st.lists(st.sampled_from("seuTx"), min_size=6, max_size=60), st.integers(1, 4000))
def test_only_unordered_requests_change_their_places_and_only_up_to_the_next_other_one(
    kinds: list[str], cut: int
) -> None:
    made: dict[str, Any] = {
        "s": send,
        "e": end,
        "u": lambda n: send(n, b="U"),
        "T": lambda n: end(n, 1),
        "x": any_other,
    }
    data = b"".join(made[kind](number) for number, kind in enumerate(kinds, 1))
    pieces = [data[start : start + cut] for start in range(0, len(data), cut)]
    decoder = knowing()
    received = [one for piece in pieces for one in one_by_one(decoder.receive(piece))]
    opaques = [command.opaque - 1000 for command in received]
    assert sorted(opaques) == [*range(1, len(kinds) + 1)]
    ordered = [number for number in opaques if kinds[number - 1] in "sux"]
    ends = [number for number in opaques if kinds[number - 1] in "eTx"]
    assert (ordered, ends) == (sorted(ordered), sorted(ends))


def has_shape(frames: Sequence[bytes]) -> bool:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    return any(streaks(decoder.receive(b"".join(frames) * (2 + MIN_STREAK))))


JSON = (
    b'{"code":310,"extFields":{"e":"1","g":"5","i":"UNIQ_KEY\\u0001A\\u0002"},'
    b'"flag":0,"language":"JAVA","opaque":7,"version":9}'
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"", b"", True),
        (b'"flag":0', b'"flag":2', False),
        (b'"flag":0', b'"remark":"odd","flag":0', False),
        (b'"flag":0', b'"x":{"opaque":7},"flag":0', False),
        (b'"opaque":7,', b'"opaque":7,"opaque":7,', False),
        (b'"opaque":7', b'"opaque":-7', False),
        (b'"opaque":7,', b"", False),
        (b'"e":"1"', b'"e":1', False),
        (b'"e":"1"', b'"e":"1","e":"1"', False),
        (b'"e":"1"', b'"e":" 1"', False),
        (b'"g":"5",', b"", False),
        (b"UNIQ_KEY", b"DELAY", False),
        (b"\\u0002", b"\\u0002UNIQ_KEY\\u0001A\\u0002", False),
        (b"A\\u0002", b"\\u0041\\u0002", False),
        (b"A\\u0002", b"\\u0002", False),
        (b"code", b"c\\u006fde", False),
        (b'"language":"JAVA",', b'"language":"JAVA", ', False),
    ],
)
def test_only_headers_as_clients_write_them_have_a_shape(before: bytes, after: bytes, expected: bool) -> None:
    header = JSON.replace(before, after, 1)
    FrameDecoder().receive_data(frame(0, header, b"x"))  # it is one
    assert has_shape([frame(0, header, b"x")]) is expected


def test_headers_and_bodies_past_the_limits_have_no_shape() -> None:
    assert has_shape([send(body=b"x" * MAX_BODY_BYTES)])
    assert not has_shape([send(body=b"x" * (MAX_BODY_BYTES + 1))])
    most = MAX_HEADER_BYTES - (len(send(a="")) - HEAD_BYTES - len(b"hello"))
    assert has_shape([send(a="x" * most)])
    assert not has_shape([send(a="x" * (most + 1))])


def test_a_header_with_one_field_twice_has_no_shape() -> None:
    header = send(1, 1)[HEAD_BYTES : -len(b"hello")]
    again = encode_binary_fields({"e": "1"})
    fields = RemotingCommand(CODE, 1, language="JAVA", serialize_type=SerializeType.ROCKETMQ,
                             raw_ext_fields=header[WITHOUT_REMARK.size :] + again)  # fmt: skip
    assert not has_shape([encode_frame(fields)])


@pytest.mark.parametrize(("digits", "expected"), [(18, True), (19, False)])
def test_numbers_that_may_be_too_large_have_no_shape(digits: int, expected: bool) -> None:
    assert has_shape([send(g="1" * digits)]) is expected


def test_other_codes_are_not_learned() -> None:
    assert not has_shape([encode_frame(RemotingCommand(11, 1, language="JAVA", ext_fields={"e": "1", "g": "5"}))])


def test_a_header_that_does_not_fit_is_learned_in_the_other_ones_place_when_it_comes_often() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    assert streaks(decoder.receive(send() * (2 + MIN_STREAK))) == [0, 0, MIN_STREAK]
    assert not any(streaks(decoder.receive(send(b="U") * (LEARN_EVERY + MIN_STREAK - 2))))
    assert streaks(decoder.receive(send(b="U") * MIN_STREAK + send())) == [MIN_STREAK, 0]


def test_what_cannot_have_a_shape_is_looked_at_seldom() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    delayed = send(i="UNIQ_KEY\x01C0A800000001\x02DELAY\x01100\x02")
    assert len(delayed) == len(send())
    with patch.object(Shapes, "of", return_value=None) as of:
        decoder.receive(delayed * LEARN_AGAIN)
        assert of.call_count == 1
        decoder.receive(delayed * 2)
        assert of.call_count == 2
    assert streaks(decoder.receive(send() * LEARN_AGAIN + send() * MIN_STREAK))[-1] == MIN_STREAK


def test_one_send_a_read_is_not_learned_again() -> None:
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    with patch.object(Shapes, "of", side_effect=Shapes.of, autospec=True) as of:
        for _ in range(3 * LEARN_EVERY):
            decoder.receive(send())
        assert of.call_count == 1


def test_a_peer_has_a_bounded_number_of_shapes_and_takes_them_with_it() -> None:
    shapes = Shapes(VARYING)
    decoder = FrameDecoder(shapes=shapes)
    for length in range(1, 2 * MAX_MARKS_OF_PEER):
        decoder.receive(send(a="x" * length) * 2)
    gc.collect()
    assert len(shapes) == MAX_MARKS_OF_PEER
    del decoder
    gc.collect()
    assert len(shapes) == 0


def test_headers_of_one_length_have_shapes_of_their_own_where_their_parts_differ_in_length() -> None:
    frames = [send(number, e="5") if number > 0 else send(number, e="10") for n in range(1, 33) for number in (n, -n)]
    assert len({*map(len, frames)}) == 1  # one has a longer queue id, the other one a longer opaque
    decoder = FrameDecoder(shapes=Shapes(VARYING))
    for _ in range(LEARN_EVERY):
        decoder.receive(b"".join(frames))
    (streak,) = decoder.receive(b"".join(frames))
    assert isinstance(streak, Streak)
    assert [*map(told, one_by_one([streak]))] == [*map(told, FrameDecoder().receive_data(b"".join(frames)))]


def test_a_length_of_headers_has_a_bounded_number_of_shapes() -> None:
    shapes = Shapes(VARYING)
    decoder = FrameDecoder(shapes=shapes)
    for producer in "ABCDEFGH":
        decoder.receive(send(a=producer) * (LEARN_EVERY + MIN_STREAK - 2))
    gc.collect()
    assert len(shapes) == MAX_SHAPES_OF_MARK
    assert [streaks(decoder.receive(send(a=producer) * 6)) for producer in "HGFED"] == [[6]] * 4 + [[0] * 6]


def test_peers_share_a_shape() -> None:
    shapes = Shapes(VARYING)
    decoders = [FrameDecoder(shapes=shapes) for _ in range(2)]
    (first,), (second,) = (decoder.receive(send() * (2 + MIN_STREAK))[2:] for decoder in decoders)
    assert isinstance(first, Streak) and isinstance(second, Streak)
    assert first.family is second.family
    assert len(shapes) == 1
