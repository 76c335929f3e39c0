"""Ending transactions and checking on them."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import RpcRequestHeader
from twisted_mq.protocol.headers.fields import boolean, int32, int64, text


@attrs.frozen(kw_only=True)
class EndTransactionRequestHeader(RpcRequestHeader):
    """Request of END_TRANSACTION.

    `commit_or_rollback` as MessageSysFlag: 0 unknown, 8 commit, 12 rollback.
    """

    topic: str | None = field(default=None, metadata=text("topic"))
    producer_group: str = field(metadata=text("producerGroup"))
    tran_state_table_offset: int = field(metadata=int64("tranStateTableOffset"))
    commit_log_offset: int = field(metadata=int64("commitLogOffset"))
    commit_or_rollback: int = field(metadata=int32("commitOrRollback", allowed=(0, 8, 12)))
    from_transaction_check: bool = field(default=False, metadata=boolean("fromTransactionCheck"))
    msg_id: str = field(metadata=text("msgId"))
    transaction_id: str | None = field(default=None, metadata=text("transactionId"))


@attrs.frozen(kw_only=True)
class CheckTransactionStateRequestHeader(RpcRequestHeader):
    """Request of CHECK_TRANSACTION_STATE."""

    topic: str | None = field(default=None, metadata=text("topic"))
    tran_state_table_offset: int = field(metadata=int64("tranStateTableOffset"))
    commit_log_offset: int = field(metadata=int64("commitLogOffset"))
    msg_id: str | None = field(default=None, metadata=text("msgId"))
    transaction_id: str | None = field(default=None, metadata=text("transactionId"))
    offset_msg_id: str | None = field(default=None, metadata=text("offsetMsgId"))


@attrs.frozen(kw_only=True)
class CheckTransactionStateResponseHeader:
    """Unused by Apache, which answers with END_TRANSACTION."""

    producer_group: str = field(metadata=text("producerGroup"))
    tran_state_table_offset: int = field(metadata=int64("tranStateTableOffset"))
    commit_log_offset: int = field(metadata=int64("commitLogOffset"))
    commit_or_rollback: int = field(metadata=int32("commitOrRollback", allowed=(8, 12)))


@attrs.frozen(kw_only=True)
class ResumeCheckHalfMessageRequestHeader:
    """Request of RESUME_CHECK_HALF_MESSAGE."""

    topic: str | None = field(default=None, metadata=text("topic"))
    msg_id: str | None = field(default=None, metadata=text("msgId"))
