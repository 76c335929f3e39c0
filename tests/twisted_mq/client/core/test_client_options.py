"""Options of a client for all its producers and consumers."""

from __future__ import annotations

import pytest

from twisted_mq.client import ClientOptions
from twisted_mq.protocol.wire.signature import Credentials
from twisted_mq.routing.errors import ClientOptionIllegal


def test_credentials_are_whole_or_none() -> None:
    assert ClientOptions().credentials is None
    options = ClientOptions(access_key="ada", secret_key="planted", security_token="planted")
    assert options.credentials == Credentials("ada", "planted", "planted")
    assert "planted" not in repr(options)
    for half in (ClientOptions(access_key="ada"), ClientOptions(secret_key="planted")):
        with pytest.raises(ClientOptionIllegal, match=r"^access_key and secret_key must be given together$"):
            _ = half.credentials
