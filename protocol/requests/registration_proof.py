"""The proof by which a broker shows a name server that it knows registrationSharedSecret. Apache has no such thing.

The request carries HMAC-SHA256(secret, code, fields, body) as hexadecimal text in the field PROOF. Who can read the network
may send the same request again, but no other one.
"""

from __future__ import annotations

import hmac

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE

PROOF = "registrationProof"
_NOT_PROVEN = frozenset({PROOF, ACCESS_KEY, SECURITY_TOKEN, SIGNATURE})
"""A signature is added when the request leaves, after its proof."""


def registration_proof(command: RemotingCommand, secret: str) -> str:
    """Return the proof for a request; its other fields are complete."""
    texts = [
        text for name, value in sorted(command.ext_fields.items()) if name not in _NOT_PROVEN for text in (name, value)
    ]
    parts = [text.encode() for text in (str(command.code), *texts)]
    signed = [str([len(part) for part in parts]).encode(), *parts, command.body]
    return hmac.digest(secret.encode(), b"".join(signed), "sha256").hex()


def is_proven(command: RemotingCommand, secret: str) -> bool:
    """Return whether the request carries the right proof."""
    given = command.ext_fields.get(PROOF, "")
    return hmac.compare_digest(given.encode(), registration_proof(command, secret).encode())
