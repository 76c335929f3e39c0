"""Authenticates gRPC clients by the signature of their calls.

    authorization: MQv2-HMAC-SHA1 Credential=AK, SignedHeaders=x-mq-date-time, Signature=HEX

The signature is HMAC-SHA1 of the text of x-mq-date-time with the user's secret. The broker checks what the user may do: it
receives the call's requests signed by the same user.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable

import attrs
from twisted.internet import defer

from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.statuses import ProxyError

AUTHORIZATION = "authorization"
DATE_TIME = "x-mq-date-time"
_HEADER = re.compile(r"(\S+)\s+Credential=([^,/]*)[^,]*,\s*SignedHeaders=([^,]*),\s*Signature=([0-9A-Fa-f]*)\s*")


@attrs.frozen
class Authentication:
    """Checks the signatures of calls.

    `secret_of` returns a user's secret, at once or later; None for an unknown user. It is None itself if users are not
    authenticated.
    """

    secret_of: Callable[[str], str | defer.Deferred[str | None] | None] | None = None

    async def check(self, call: Call) -> str | None:
        """Return the user who signed the call; None if users are not authenticated. Raises ProxyError, RocketMQError."""
        if self.secret_of is None:
            return None
        header = call.metadata.get(AUTHORIZATION)
        match = _HEADER.fullmatch(header)
        if match is None:
            raise _refused("metadata authorization is missing, or no signature of a RocketMQ client")
        access_key, signature = match[2], match[4]
        found = self.secret_of(access_key)
        secret = await found if isinstance(found, defer.Deferred) else found
        if secret is None:
            raise _refused(f"user {access_key!r} is not known")
        signed = hmac.digest(secret.encode(), call.metadata.get(DATE_TIME).encode(), "sha1").hex()
        if not hmac.compare_digest(signed, signature.lower()):
            raise _refused("check signature failed.")
        return access_key


def _refused(message: str) -> ProxyError:
    return ProxyError("UNAUTHORIZED", message)
