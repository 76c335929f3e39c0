"""Output of haStatus for a master and a slave, column by column as in Apache's tool."""

from __future__ import annotations

import datetime

from twisted_mq.cli.admin.ha_status import lines
from twisted_mq.protocol.bodies import HAClientRuntimeInfo, HAConnectionRuntimeInfo, HARuntimeInfo


def test_master_with_two_slaves():
    info = HARuntimeInfo(
        master=True,
        master_commit_log_max_offset=5000,
        in_sync_slave_nums=1,
        ha_connection_info=[
            HAConnectionRuntimeInfo("127.0.0.1:50001", 5000, 0, True, 3072, 5000),
            HAConnectionRuntimeInfo("127.0.0.1:50002", -1, 5001, False, 0, -1),
        ],
    )
    assert lines("127.0.0.1:10911", info) == [
        "",
        "#MasterAddr\t127.0.0.1:10911",
        "#MasterCommitLogMaxOffset\t5000",
        "#SlaveNum\t2",
        "#InSyncSlaveNum\t1",
        "#SlaveAddr                        #SlaveAckOffset             #Diff #TransferSpeed(KB/s)          #Status"
        " #TransferFromWhere",
        "127.0.0.1:50001                   5000                            0             3.00               OK"
        "             5000",
        "127.0.0.1:50002                   -1                           5001             0.00      Fall Behind"
        "               -1",
    ]


def test_slave():
    client = HAClientRuntimeInfo("127.0.0.1:10912", 2048, 5000, 1_795_217_217_123, 1_795_217_218_000, 0)
    assert lines("127.0.0.1:20911", HARuntimeInfo(ha_client_runtime_info=client), datetime.UTC) == [
        "",
        "#MasterAddr\t127.0.0.1:10912",
        "#CommitLogMaxOffset\t5000",
        "#TransferSpeed(KB/s)\t2.00",
        "#LastReadTime\t2026-11-20 23:26:57,123",
        "#LastWriteTime\t2026-11-20 23:26:58,000",
        "#MasterFlushOffset\t0",
    ]
