from __future__ import annotations

import pytest

from twisted_mq.protocol import flags
from twisted_mq.protocol.flags import MessageSysFlag, PermName, PullSysFlag, TopicSysFlag

# From the class files of Apache RocketMQ 5.3.3.
APACHE = {
    MessageSysFlag: {
        "COMPRESSED_FLAG": 1,
        "MULTI_TAGS_FLAG": 2,
        "TRANSACTION_NOT_TYPE": 0,
        "TRANSACTION_PREPARED_TYPE": 4,
        "TRANSACTION_COMMIT_TYPE": 8,
        "TRANSACTION_ROLLBACK_TYPE": 12,
        "BORNHOST_V6_FLAG": 16,
        "STOREHOSTADDRESS_V6_FLAG": 32,
        "NEED_UNWRAP_FLAG": 64,
        "INNER_BATCH_FLAG": 128,
        "COMPRESSION_LZ4_TYPE": 256,
        "COMPRESSION_ZSTD_TYPE": 512,
        "COMPRESSION_ZLIB_TYPE": 768,
        "COMPRESSION_TYPE_COMPARATOR": 1792,
    },
    PullSysFlag: {
        "FLAG_COMMIT_OFFSET": 1,
        "FLAG_SUSPEND": 2,
        "FLAG_SUBSCRIPTION": 4,
        "FLAG_CLASS_FILTER": 8,
        "FLAG_LITE_PULL_MESSAGE": 16,
    },
    TopicSysFlag: {"FLAG_UNIT": 1, "FLAG_UNIT_SUB": 2},
    PermName: {"PERM_PRIORITY": 8, "PERM_READ": 4, "PERM_WRITE": 2, "PERM_INHERIT": 1},
}


@pytest.mark.parametrize("group", APACHE, ids=lambda group: group.__name__)
def test_values_are_apache_s(group: type) -> None:
    assert {name: value for name, value in vars(group).items() if name.isupper()} == APACHE[group]


@pytest.mark.parametrize(
    ("perm", "text"), [(0, "---"), (1, "--X"), (2, "-W-"), (4, "R--"), (6, "RW-"), (7, "RWX"), (15, "RWX")]
)
def test_permissions_have_apache_s_text(perm: int, text: str) -> None:
    assert flags.perm_text(perm) == text


def test_transaction_bits_are_read_and_replaced() -> None:
    half = 0x301 | MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert flags.transaction_value(half) == MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert flags.reset_transaction_value(half, MessageSysFlag.TRANSACTION_COMMIT_TYPE) == 0x309


def test_the_compressed_bit_is_told_from_the_type_of_compression() -> None:
    assert flags.is_compressed(0x301)
    assert not flags.is_compressed(0x300)


def test_pull_flags_are_built_from_their_meanings() -> None:
    assert flags.build_pull_sys_flag(commit_offset=True, suspend=True, subscription=False) == 3
    assert (
        flags.build_pull_sys_flag(
            commit_offset=False, suspend=False, subscription=True, class_filter=True, lite_pull=True
        )
        == 28
    )
