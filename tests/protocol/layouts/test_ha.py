from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures import CAPTURES, HA_STREAMS, commit_log_files
from twisted_mq.protocol.errors import FrameError, FrameTooLarge
from twisted_mq.protocol.layouts.ha import (
    EPOCH_ENTRY,
    SLAVE_REPORT,
    SWITCH_MASTER_HANDSHAKE,
    SWITCH_SLAVE_HANDSHAKE,
    SWITCH_SLAVE_REPORT,
    SWITCH_TRANSFER_HEADER,
    TRANSFER_HEADER,
    ConnectionState,
    ReportDecoder,
    Transfer,
    TransferDecoder,
    encode_confirms,
    encode_report,
    encode_transfer_header,
)


def recording(name: str) -> tuple[bytes, bytes, dict[str, Any]]:
    """(slave's bytes, master's bytes, what the recording says of them)."""
    base = CAPTURES / "ha"
    index = json.loads((base / f"{name}.json").read_text())
    return (base / f"{name}.c2m").read_bytes(), (base / f"{name}.m2s").read_bytes(), index


def encode(transfers: list[Transfer]) -> bytes:
    return b"".join(encode_transfer_header(t.physical_offset, len(t.data)) + t.data for t in transfers)


@pytest.mark.parametrize("name", HA_STREAMS)
def test_recorded_reports_read_and_encode_again(name: str) -> None:
    slave, _, index = recording(name)
    decoder = ReportDecoder()
    reports = [decoder.receive_data(slave[start : start + 8]) for start in range(0, len(slave), 8)]
    assert reports == [report["reported_offset"] for report in index["slave_reports"]]
    assert b"".join(encode_report(report or 0) for report in reports) == slave


@pytest.mark.parametrize("name", HA_STREAMS)
def test_recorded_transfers_read_and_encode_again(name: str) -> None:
    _, master, index = recording(name)
    transfers = TransferDecoder().receive_data(master)
    assert [(t.physical_offset, len(t.data)) for t in transfers] == [
        (header["phy_offset"], header["body_size"]) for header in index["master_headers"]
    ]
    assert encode(transfers) == master


def test_the_transferred_bytes_are_those_of_the_log() -> None:
    _, master, _ = recording("from_empty")
    log = commit_log_files("ha_slave")[0]
    data = [t for t in TransferDecoder().receive_data(master) if t.data]
    assert len(data) > 1
    for transfer in data:
        assert log[transfer.physical_offset : transfer.physical_offset + len(transfer.data)] == transfer.data


@given(
    st.lists(st.builds(Transfer, st.integers(0, 2**63 - 1), st.binary(max_size=30)), max_size=6),
    st.lists(st.integers(0, 250), max_size=10),
)
def test_any_split_gives_the_same_transfers(transfers: list[Transfer], cuts: list[int]) -> None:
    stream = encode(transfers)
    decoder, position = TransferDecoder(), 0
    found: list[Transfer] = []
    for cut in [*sorted(cuts), len(stream)]:
        if cut > position:
            found += decoder.receive_data(stream[position:cut])
            position = cut
    assert found == transfers


def test_reports_may_come_in_pieces_and_the_newest_counts() -> None:
    decoder = ReportDecoder()
    stream = encode_report(10) + encode_report(20) + encode_report(30)
    assert [
        decoder.receive_data(stream[:5]),
        decoder.receive_data(stream[5:20]),
        decoder.receive_data(stream[20:]),
    ] == [
        None,
        20,
        30,
    ]


@pytest.mark.parametrize(("offset", "size"), [(0, -1), (-1, 0)])
def test_a_negative_number_is_refused_with_the_stream_s_offset(offset: int, size: int) -> None:
    decoder = TransferDecoder()
    decoder.receive_data(encode([Transfer(0, memoryview(b"abc"))]))
    with pytest.raises(FrameError) as caught:
        decoder.receive_data(encode_transfer_header(offset, size))
    assert caught.value.offset == 15


def test_a_transfer_past_the_limit_is_refused_at_its_header() -> None:
    with pytest.raises(FrameTooLarge, match="101 bytes, the limit is 100"):
        TransferDecoder(100).receive_data(encode_transfer_header(0, 101))


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_no_bytes_raise_anything_else(pieces: list[bytes]) -> None:
    reports, transfers = ReportDecoder(), TransferDecoder(1000)
    try:
        for piece in pieces:
            reports.receive_data(piece)
            transfers.receive_data(piece)
    except FrameError as error:
        assert error.offset <= sum(map(len, pieces))


def test_frames_are_as_their_layouts_build_them() -> None:
    assert encode_report(4096) == SLAVE_REPORT.build({"max_offset": 4096})
    assert encode_transfer_header(4096, 77) == TRANSFER_HEADER.build({"physical_offset": 4096, "size": 77})


def test_the_switching_service_s_frames_have_their_fields_in_apache_s_order() -> None:
    handshake = {"state": ConnectionState.HANDSHAKE, "sync_from_last_file": 1, "async_learner": 0, "broker_id": 2}
    assert SWITCH_SLAVE_HANDSHAKE.build(handshake).hex() == "00000001" "0001" "0000" "0000000000000002"  # fmt: skip
    answer = {"state": 1, "size": 24, "max_physical_offset": 4096, "epoch": 3}
    assert SWITCH_MASTER_HANDSHAKE.build(answer).hex() == "00000001" "00000018" "0000000000001000" "00000003"  # fmt: skip
    report = {"state": 2, "max_offset": 4096}
    assert SWITCH_SLAVE_REPORT.build(report).hex() == "00000002" "0000000000001000"  # fmt: skip
    header = {"state": 2, "size": 5, "physical_offset": 1, "epoch": 2, "epoch_start_offset": 3, "confirm_offset": 4}
    assert SWITCH_TRANSFER_HEADER.build(header).hex() == (
        "00000002" "00000005" "0000000000000001" "00000002" "0000000000000003" "0000000000000004"
    )  # fmt: skip
    assert EPOCH_ENTRY.build({"epoch": 3, "start_offset": 4096}).hex() == "00000003" "0000000000001000"  # fmt: skip


@given(st.lists(st.integers(1, 7)))
def test_session_in_which_reports_count_is_read_from_any_split_of_the_stream(cuts: list[int]) -> None:
    stream = encode_report(5) + encode_confirms(-77) + encode_report(9) + encode_confirms(0) + encode_confirms(2**62)
    decoder, reports, sessions, place = ReportDecoder(), [], [0], 0
    for size in [*cuts, len(stream)]:
        report = decoder.receive_data(stream[place : place + size])
        place += size
        if report is not None:
            reports.append(report)
        if decoder.session != sessions[-1]:
            sessions.append(decoder.session)
    assert reports in ([5, 9], [9])
    assert set(sessions) <= {0, -77, 2**62}
    assert sessions[-1] == 2**62


def test_pieces_of_a_transfer_are_joined_when_it_is_whole() -> None:
    """Joining them at each piece would copy a large transfer as often as it has pieces."""
    stream = encode([Transfer(0, memoryview(b"first")), Transfer(5, memoryview(bytes(1000)))])
    decoder = TransferDecoder()
    with patch.object(TransferDecoder, "_cut", autospec=True, side_effect=TransferDecoder._cut) as cut:
        pieces = [stream[start : start + 20] for start in range(0, len(stream), 20)]
        found = [transfer.physical_offset for piece in pieces for transfer in decoder.receive_data(piece)]
    assert found == [0, 5]
    assert cut.call_count <= 3
