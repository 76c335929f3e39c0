"""Names of groups and topics."""

from __future__ import annotations

import pytest

from twisted_mq.client.core.errors import ClientOptionIllegal
from twisted_mq.client.core.name_checks import check_group, check_topic


def test_names_of_groups_and_topics() -> None:
    check_group("g-1")
    check_topic("T_1")
    with pytest.raises(ClientOptionIllegal, match="group 'a b'"):
        check_group("a b")
    with pytest.raises(ClientOptionIllegal, match=r"topic '\.\./x'"):
        check_topic("../x")
