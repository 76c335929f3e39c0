"""Implements `mqadmin resetMasterFlushOffset` (Apache: ResetMasterFlushOffsetSubCommand): tells a slave how far its
master has flushed.
"""

from __future__ import annotations

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import ResetMasterFlushOffsetHeader


async def reset_master_flush_offset(admin: AdminContext, line: CommandLine) -> None:
    if "b" not in line or "o" not in line:
        raise UsageError("Missing required options: b, o")
    offset = line.number("o", 0)
    header = ResetMasterFlushOffsetHeader(master_flush_offset=offset)
    await admin.invoke(line.value("b"), RequestCode.RESET_MASTER_FLUSH_OFFSET, header)
    admin.say(f"reset master flush offset to {offset} success", broker=line.value("b"), offset=offset)
