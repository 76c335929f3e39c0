"""Answers requests about parts of 5.3.3 that this broker does not have, as Apache's broker with default settings: 354,
355, 908 and 200056.

Apache: AdminBrokerProcessor. There is no RocksDB.
"""

from __future__ import annotations

from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import CheckRocksdbCqWriteResult, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import (
    ExportRocksDBConfigToJsonRequestHeader,
    ResetMasterFlushOffsetHeader,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import decode_header
from twisted_mq.remoting.channel import Answer, Channel

CHECK_ERROR = 3
"""CheckStatus of an answer whose text mqadmin prints."""
NO_ROCKSDB = "rocksdbCQWriteEnable is false, checkRocksdbCqWriteProgressCommand is invalid"


class AdminAbsentPartsProcessor:
    """Answers these requests without changing anything."""

    log = Logger()

    def __init__(self) -> None:
        self.processors = {
            RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: self.check_queues,
            RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: self.export_settings,
            RequestCode.RESET_MASTER_FLUSH_OFFSET: self.flush_offset,
            RequestCode.POP_ROLLBACK: self.pops_to_files,
        }

    def check_queues(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Report success: queues are kept in one place only. Apache's broker answers that it checks, and writes the
        result to its log.
        """
        return command.answer(body=encode_body(CheckRocksdbCqWriteResult(NO_ROCKSDB, CHECK_ERROR)))

    def export_settings(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Report success: topics, groups and offsets are JSON files already."""
        decode_header(ExportRocksDBConfigToJsonRequestHeader, command)
        return command.answer(remark="export done.")

    def pops_to_files(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Report success: check points of pops are in the revive log only."""
        return command.answer()

    def flush_offset(self, channel: Channel, command: RemotingCommand) -> Answer:
        """Report success: a slave learns only from its replication link how far its master has flushed."""
        header = decode_header(ResetMasterFlushOffsetHeader, command)
        self.log.info(
            "masterFlushOffset has no effect: offset={offset} peer={peer}",
            offset=header.master_flush_offset,
            peer=channel.address,
        )
        return command.answer()
