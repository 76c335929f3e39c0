"""`mqadmin dumpCompactionLog` (Apache: DumpCompactionLogCommand): the messages of a compaction log's file."""

from __future__ import annotations

from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import CommandLine, UsageError
from twisted_mq.cli.admin.files import read_bytes
from twisted_mq.cli.admin.java_text import message_text
from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record import read_mark
from twisted_mq.protocol.layouts.record_codec import decode_message


async def dump_compaction_log(admin: AdminContext, line: CommandLine) -> None:
    if "f" not in line:
        raise UsageError("miss dump log file name")
    _show_messages(admin, read_bytes(line.value("f")))


def _show_messages(admin: AdminContext, data: bytes) -> None:
    """Show messages up to the first place without one, because the rest of the file is empty. Raises CliError for damage."""
    offset = 0
    while offset + 8 <= len(data) and 0 < read_mark(data, offset)[0] <= len(data) - offset:
        try:
            message = decode_message(data, offset, check_crc=False)
        except RecordError as error:
            raise CliError(f"no message at {offset}: {error}") from error
        admin.say(
            message_text(message, None),
            offset=offset, topic=message.topic, queueId=message.queue_id, queueOffset=message.queue_offset,
            msgId=message.unique_key or message.msg_id, keys=message.keys,
        )  # fmt: skip
        offset += message.store_size
