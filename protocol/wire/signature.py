"""Signatures of requests (Apache: AclClientRPCHook, AclUtils, AclSigner): HMAC-SHA1 in Base64, in the field `Signature`.

What is signed are the values of all other fields, in the order in which Java sorts their names, and then the body:

    {"AccessKey":"ada","topic":"T"}, body b"x"  ->  b"adaTx"

Neither the code nor the opaque nor a time is part of it: a signed request can be sent again by whoever has seen it.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

import attrs

from twisted_mq.protocol.wire.command import RemotingCommand

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
V4_9_3 = 399
"""MQVersion ordinal; clients up to it add UNIQUE_KEY_QUERY after they have signed."""


@attrs.frozen
class Credentials:
    """Who signs: the user's name, what only he and the servers know, and a token of a cloud's where there is one."""

    access_key: str
    secret_key: str = attrs.field(repr=False)
    security_token: str | None = attrs.field(default=None, repr=False)


def signature_of(fields: Mapping[str, str], body: bytes, secret_key: str) -> str:
    """The signature over these fields, none of which is `Signature`, and the body."""
    text = "".join([fields[name] for name in _in_java_order(fields)])
    digest = hmac.digest(secret_key.encode(), text.encode(errors="replace") + body, "sha1")
    return base64.b64encode(digest).decode()


def _in_java_order(fields: Mapping[str, str]) -> list[str]:
    """Java compares text by its UTF-16 units, Python by code points."""
    if "".join(fields).isascii():
        return sorted(fields)
    return sorted(fields, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def sign(command: RemotingCommand, credentials: Credentials) -> None:
    """Add the fields that prove who sends the command; what it had of them before is replaced."""
    fields = {**command.ext_fields, ACCESS_KEY: credentials.access_key}
    fields.pop(SIGNATURE, None)
    if credentials.security_token is not None:
        fields[SECURITY_TOKEN] = credentials.security_token
    fields[SIGNATURE] = signature_of(fields, command.body, credentials.secret_key)
    command.replace_fields(fields)


def is_signed(command: RemotingCommand, secret_key: str) -> bool:
    """Whether the sender of a request knew the secret. Takes as long for a wrong signature as for a right one."""
    signed = dict(command.ext_fields)
    given = signed.pop(SIGNATURE, None)
    if given is None:
        return False
    if command.version <= V4_9_3:
        signed.pop(UNIQUE_KEY_QUERY, None)
    return hmac.compare_digest(signature_of(signed, command.body, secret_key).encode(), given.encode(errors="replace"))
