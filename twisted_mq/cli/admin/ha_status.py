"""Implements `mqadmin haStatus` (a master's slaves, or a slave's master) and `resetMasterFlushOffset`."""

from __future__ import annotations

import datetime
from typing import cast

from twisted_mq.cli.admin.calls import AdminContext, chosen_masters
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.java_format import time_text
from twisted_mq.protocol.bodies import HAClientRuntimeInfo, HARuntimeInfo, decode_body, to_value
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import ResetMasterFlushOffsetHeader
from twisted_mq.protocol.text.json_value import Json

DEFAULT_INTERVAL_SECONDS = 3

HEAD = (
    f"{'#SlaveAddr':<32}  {'#SlaveAckOffset':<16} {'#Diff':>16} {'#TransferSpeed(KB/s)':>16} {'#Status':>16}"
    f" {'#TransferFromWhere':>16}"
)


async def ha_status(admin: AdminContext, line: CommandLine) -> None:
    await _print_once(admin, line)
    while "i" in line:
        await admin.sleep(line.number("i", DEFAULT_INTERVAL_SECONDS))
        await _print_once(admin, line)


async def _print_once(admin: AdminContext, line: CommandLine) -> None:
    for address in await chosen_masters(admin, line):
        answer = await admin.invoke(address, RequestCode.GET_BROKER_HA_STATUS)
        info = decode_body(HARuntimeInfo, answer.body)
        admin.say("\n".join(lines(address, info)), broker=address, status=cast(Json, to_value(info)))


def lines(address: str, info: HARuntimeInfo, zone: datetime.tzinfo | None = None) -> list[str]:
    """Return the lines printed for one broker."""
    return _of_master(address, info) if info.master else _of_slave(info.ha_client_runtime_info, zone)


def _of_master(address: str, info: HARuntimeInfo) -> list[str]:
    rows = [
        "",
        f"#MasterAddr\t{address}",
        f"#MasterCommitLogMaxOffset\t{info.master_commit_log_max_offset}",
        f"#SlaveNum\t{len(info.ha_connection_info)}",
        f"#InSyncSlaveNum\t{info.in_sync_slave_nums}",
        HEAD,
    ]
    for slave in info.ha_connection_info:
        speed = slave.transferred_byte_in_second / 1024
        status = "OK" if slave.in_sync else "Fall Behind"
        rows.append(
            f"{slave.addr or 'null':<32}  {slave.slave_ack_offset:<16d} {slave.diff:>16d} {speed:>16.2f} {status:>16}"
            f" {slave.transfer_from_where:>16d}"
        )
    return rows


def _of_slave(info: HAClientRuntimeInfo, zone: datetime.tzinfo | None) -> list[str]:
    return [
        "",
        f"#MasterAddr\t{info.master_addr or 'null'}",
        f"#CommitLogMaxOffset\t{info.max_offset}",
        f"#TransferSpeed(KB/s)\t{info.transferred_byte_in_second / 1024:.2f}",
        f"#LastReadTime\t{time_text(info.last_read_timestamp, zone)}",
        f"#LastWriteTime\t{time_text(info.last_write_timestamp, zone)}",
        f"#MasterFlushOffset\t{info.master_flush_offset}",
    ]


async def reset_master_flush_offset(admin: AdminContext, line: CommandLine) -> None:
    """Tell a slave how far its master has flushed (Apache: ResetMasterFlushOffsetSubCommand)."""
    if "b" not in line or "o" not in line:
        raise UsageError("Missing required options: b, o")
    offset = line.number("o", 0)
    header = ResetMasterFlushOffsetHeader(master_flush_offset=offset)
    await admin.invoke(line.value("b"), RequestCode.RESET_MASTER_FLUSH_OFFSET, header)
    admin.say(f"reset master flush offset to {offset} success", broker=line.value("b"), offset=offset)
