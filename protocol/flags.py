"""Bit flags of messages, pulls, topics and permissions, named as in Apache's classes of the same names.

They are plain integers: flags travel in hot paths, where an IntFlag costs ten times an int.
"""

from __future__ import annotations

from typing import Final


class MessageSysFlag:
    """sysFlag of a message: compression, transaction state, kinds of addresses."""

    COMPRESSED_FLAG: Final = 0x1
    MULTI_TAGS_FLAG: Final = 0x2
    TRANSACTION_NOT_TYPE: Final = 0x0
    TRANSACTION_PREPARED_TYPE: Final = 0x4
    TRANSACTION_COMMIT_TYPE: Final = 0x8
    TRANSACTION_ROLLBACK_TYPE: Final = 0xC
    BORNHOST_V6_FLAG: Final = 0x10
    STOREHOSTADDRESS_V6_FLAG: Final = 0x20
    NEED_UNWRAP_FLAG: Final = 0x40
    INNER_BATCH_FLAG: Final = 0x80
    COMPRESSION_LZ4_TYPE: Final = 0x100
    COMPRESSION_ZSTD_TYPE: Final = 0x200
    COMPRESSION_ZLIB_TYPE: Final = 0x300
    COMPRESSION_TYPE_COMPARATOR: Final = 0x700


def transaction_value(sys_flag: int) -> int:
    """Return the transaction bits: one of the TRANSACTION_..._TYPE values."""
    return sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def reset_transaction_value(sys_flag: int, transaction_type: int) -> int:
    """Return `sys_flag` with its transaction bits replaced."""
    return (sys_flag & ~MessageSysFlag.TRANSACTION_ROLLBACK_TYPE) | transaction_type


def without_commit(sys_flag: int) -> int:
    """Return the flags that a client may set: only the broker says that a message was committed."""
    committed = transaction_value(sys_flag) == MessageSysFlag.TRANSACTION_COMMIT_TYPE
    return sys_flag & ~MessageSysFlag.TRANSACTION_COMMIT_TYPE if committed else sys_flag


def is_compressed(sys_flag: int) -> bool:
    """Return whether the stored body is compressed."""
    return bool(sys_flag & MessageSysFlag.COMPRESSED_FLAG)


class PullSysFlag:
    """sysFlag of a pull request."""

    FLAG_COMMIT_OFFSET: Final = 0x1
    FLAG_SUSPEND: Final = 0x2
    FLAG_SUBSCRIPTION: Final = 0x4
    FLAG_CLASS_FILTER: Final = 0x8
    FLAG_LITE_PULL_MESSAGE: Final = 0x10


def build_pull_sys_flag(
    *, commit_offset: bool, suspend: bool, subscription: bool, class_filter: bool = False, lite_pull: bool = False
) -> int:
    """Return the sysFlag of a pull request (Apache: PullSysFlag.buildSysFlag)."""
    return (
        commit_offset * PullSysFlag.FLAG_COMMIT_OFFSET
        | suspend * PullSysFlag.FLAG_SUSPEND
        | subscription * PullSysFlag.FLAG_SUBSCRIPTION
        | class_filter * PullSysFlag.FLAG_CLASS_FILTER
        | lite_pull * PullSysFlag.FLAG_LITE_PULL_MESSAGE
    )


class TopicSysFlag:
    """topicSysFlag of a topic's configuration."""

    FLAG_UNIT: Final = 0x1
    FLAG_UNIT_SUB: Final = 0x2


class PermName:
    """perm of a topic or broker: what clients may do there."""

    PERM_INHERIT: Final = 0x1
    PERM_WRITE: Final = 0x2
    PERM_READ: Final = 0x4
    PERM_PRIORITY: Final = 0x8


def is_readable(perm: int) -> bool:
    return bool(perm & PermName.PERM_READ)


def is_writeable(perm: int) -> bool:
    return bool(perm & PermName.PERM_WRITE)


def is_inherited(perm: int) -> bool:
    return bool(perm & PermName.PERM_INHERIT)


def perm_text(perm: int) -> str:
    """Return `RWX` with a dash for each missing permission (Apache: PermName.perm2String)."""
    return (
        ("R" if is_readable(perm) else "-")
        + ("W" if is_writeable(perm) else "-")
        + ("X" if is_inherited(perm) else "-")
    )


OUT_OF_QUEUES: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE
"""Set in the transaction types PREPARED and ROLLBACK: such messages enter no queue."""
INNER_BATCH: Final = MessageSysFlag.INNER_BATCH_FLAG
PERM_READ: Final = PermName.PERM_READ
PERM_WRITE: Final = PermName.PERM_WRITE
PERM_READ_WRITE: Final = PERM_READ | PERM_WRITE
