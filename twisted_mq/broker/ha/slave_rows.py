"""Shows slaves as rows of brokerStatus. Apache's table has none; haStatus shows the same in columns."""

from __future__ import annotations

from twisted_mq.protocol.bodies import HARuntimeInfo

PREFIX = "haSlave_"


def slave_rows(info: HARuntimeInfo) -> dict[str, str]:
    """Return one row for each slave of a master: offset, lag and next offset in bytes, throughput in bytes a second."""
    return {
        f"{PREFIX}{slave.addr}": (
            f"ackOffset : {slave.slave_ack_offset}, diff : {slave.diff},"
            f" transferredByteInSecond : {slave.transferred_byte_in_second},"
            f" transferFromWhere : {slave.transfer_from_where}, inSync : {str(slave.in_sync).lower()}"
        )
        for slave in (info.ha_connection_info if info.master else ())
    }
