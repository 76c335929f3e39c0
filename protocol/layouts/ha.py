"""The frames by which a slave copies its master's commit log (Apache: DefaultHAConnection, AutoSwitchHAConnection).

The plain service: the slave reports, the master sends a header and that many bytes of its log; size 0 is a heartbeat.

    slave to master, 8 bytes                 master to slave, 12 bytes and the data
    0   8  max_offset                        0   8  physical_offset
                                             8   4  size

The first report says where the slave's log ends. 0 asks for the master's newest log file from its start.

A slave of an ordered group says in between for which session of its master's its reports count as acknowledgements of
ordered messages; 0 is for none. Apache has no such thing, and it is sent to a master alone that asks for it at the coordinator.

    slave to master, 16 bytes
    0   8  CONFIRMS_OFFSET
    8   8  session

The service that switches masters has a state (HAConnectionState) in front and sends the epochs of the log first:

    slave handshake, 16 bytes                master handshake, 20 bytes and epoch entries
    0   4  state                             0   4  state
    4   2  sync_from_last_file               4   4  size of the entries
    6   2  async_learner                     8   8  max_physical_offset
    8   8  broker_id                         16  4  epoch

    slave report, 12 bytes                   master transfer, 36 bytes and the data
    0   4  state                             0   4  state
    4   8  max_offset                        4   4  size
                                             8   8  physical_offset
    epoch entry, 12 bytes                    16  4  epoch
    0   4  epoch                             20  8  epoch_start_offset
    4   8  start_offset                      28  8  confirm_offset
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import construct

from twisted_mq.protocol.errors import FrameError, FrameTooLarge
from twisted_mq.protocol.layouts.derive import derive_struct

MAX_TRANSFER_BYTES = 64 * 1024 * 1024
"""Default limit of one transfer; Apache's masters send at most 32 KiB at once (haTransferBatchSize)."""

SLAVE_REPORT = construct.Struct("max_offset" / construct.Int64sb)

TRANSFER_HEADER = construct.Struct("physical_offset" / construct.Int64sb, "size" / construct.Int32sb)

SWITCH_SLAVE_HANDSHAKE = construct.Struct(
    "state" / construct.Int32sb,
    "sync_from_last_file" / construct.Int16sb,
    "async_learner" / construct.Int16sb,
    "broker_id" / construct.Int64sb,
)

SWITCH_SLAVE_REPORT = construct.Struct("state" / construct.Int32sb, "max_offset" / construct.Int64sb)

SWITCH_MASTER_HANDSHAKE = construct.Struct(
    "state" / construct.Int32sb,
    "size" / construct.Int32sb,
    "max_physical_offset" / construct.Int64sb,
    "epoch" / construct.Int32sb,
)

EPOCH_ENTRY = construct.Struct("epoch" / construct.Int32sb, "start_offset" / construct.Int64sb)

SWITCH_TRANSFER_HEADER = construct.Struct(
    "state" / construct.Int32sb,
    "size" / construct.Int32sb,
    "physical_offset" / construct.Int64sb,
    "epoch" / construct.Int32sb,
    "epoch_start_offset" / construct.Int64sb,
    "confirm_offset" / construct.Int64sb,
)

CHALLENGE_OFFSET = -0x4841_5345_4352_4554
"""In the place of physical_offset: the head of what ha_handshake sends."""

CONFIRMS_OFFSET = -0x4841_5345_5353_494F
"""In the place of a slave's max_offset: the session of the master's follows, in which its reports count."""

_REPORT = derive_struct(SLAVE_REPORT)
_HEADER = derive_struct(TRANSFER_HEADER, "physical_offset", "size")
REPORT_BYTES = _REPORT.size
HEADER_BYTES = _HEADER.size


class ConnectionState(enum.IntEnum):
    """The state field (Apache: HAConnectionState, by ordinal)."""

    READY = 0
    HANDSHAKE = 1
    TRANSFER = 2
    SUSPEND = 3
    SHUTDOWN = 4


class Transfer(NamedTuple):
    """A piece of the master's log, whole, a view of what was received; without data it is a heartbeat."""

    physical_offset: int
    data: memoryview


def encode_report(max_offset: int) -> bytes:
    """Return a slave's report: its log is complete up to this physical offset."""
    return _REPORT.pack(max_offset)


def encode_confirms(session: int) -> bytes:
    """Return a slave's message that its reports count in this session of its master's; in none if it is 0."""
    return _REPORT.pack(CONFIRMS_OFFSET) + _REPORT.pack(session)


def encode_transfer_header(physical_offset: int, size: int) -> bytes:
    """Return the frame's head before `size` bytes of the master's log."""
    return _HEADER.pack(physical_offset, size)


class ReportDecoder:
    """The master's side: takes any split of a slave's stream. `receive_data` returns the newest report, or None.

    `session` is that of the master's in which the slave's reports count, 0 for none.
    """

    def __init__(self) -> None:
        self.session = 0
        self._rest = b""
        self._session_follows = False

    def receive_data(self, data: bytes) -> int | None:
        """Return the last complete report in all data so far; it replaces earlier ones, as in Apache."""
        data = self._rest + data
        whole = len(data) - len(data) % REPORT_BYTES
        self._rest = data[whole:]
        newest: int | None = None
        for (number,) in _REPORT.iter_unpack(data[:whole]):
            if self._session_follows:
                self.session, self._session_follows = number, False
            elif number == CONFIRMS_OFFSET:
                self._session_follows = True
            else:
                newest = number
        return newest


class TransferDecoder:
    """The slave's side: takes any split of a master's stream. Holds at most one transfer of `max_transfer_bytes`."""

    def __init__(self, max_transfer_bytes: int = MAX_TRANSFER_BYTES) -> None:
        self._max = max_transfer_bytes
        self._chunks: list[bytes] = []
        self._held = 0
        self._needed = HEADER_BYTES
        self._offset = 0

    def receive_data(self, data: bytes) -> list[Transfer]:
        """Return the transfers that are complete with `data`. Raises FrameError, with the offset in the stream."""
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return []
        whole = memoryview(b"".join(self._chunks))
        transfers, position = self._cut(whole)
        self._offset += position
        self._chunks = [bytes(whole[position:])]
        self._held = len(whole) - position
        return transfers

    def _cut(self, data: memoryview) -> tuple[list[Transfer], int]:
        """Return the complete transfers of `data` and how many bytes they took; set the bytes needed next."""
        transfers: list[Transfer] = []
        position = 0
        while True:
            self._needed = HEADER_BYTES
            if len(data) - position < HEADER_BYTES:
                return transfers, position
            physical_offset, size = _HEADER.unpack_from(data, position)
            if physical_offset == CHALLENGE_OFFSET:
                raise FrameError("the master asks for haSharedSecret", self._offset + position)
            if size < 0 or physical_offset < 0:
                raise FrameError(f"a transfer of {size} bytes at {physical_offset}", self._offset + position)
            if size > self._max:
                raise FrameTooLarge(f"a transfer of {size} bytes, the limit is {self._max}", self._offset + position)
            end = position + HEADER_BYTES + size
            if end > len(data):
                self._needed = HEADER_BYTES + size
                return transfers, position
            transfers.append(Transfer(physical_offset, data[position + HEADER_BYTES : end]))
            position = end
