"""The handshake before the first HA frame, in which master and slave prove that they know one secret. Apache has no such thing.

    challenge, master to slave, 44 bytes     proof, slave to master, 72 bytes
    0   8  CHALLENGE_OFFSET                  0   8  PROOF_OFFSET
    8   4  CHALLENGE_SIZE                    8   32 nonce
    12  32 nonce                             40  32 HMAC-SHA256(secret, "slave" and both nonces)

    answer, master to slave, 32 bytes: HMAC-SHA256(secret, "master" and both nonces); then the HA frames begin

A challenge looks like the head of a transfer that never becomes complete, and masters that send none get nothing:
so a peer without the secret, Apache's too, neither writes nor counts anything of a handshake. What follows is neither
encrypted nor signed.
"""

from __future__ import annotations

import hashlib
import hmac

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.ha import (
    CHALLENGE_OFFSET,
    HEADER_BYTES,
    REPORT_BYTES,
    encode_report,
    encode_transfer_header,
)

NONCE_BYTES = 32
PROOF_BYTES = REPORT_BYTES + NONCE_BYTES + hashlib.sha256().digest_size
ANSWER_BYTES = hashlib.sha256().digest_size

PROOF_OFFSET = CHALLENGE_OFFSET - 1
"""As CHALLENGE_OFFSET negative, which no offset is: a plain peer refuses both."""

CHALLENGE_SIZE = 0x7FFF_FF00
"""More than any transfer; with a header still an int, because Apache's slave adds the two."""


class HandshakeRefused(FrameError):
    """The peer does not know the secret, or does not ask for it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, 0)


def _sign(secret: bytes, side: bytes, master_nonce: bytes, slave_nonce: bytes) -> bytes:
    return hmac.digest(secret, side + master_nonce + slave_nonce, "sha256")


class MasterHandshake:
    """The master's side: send `challenge`, then hand in what the slave sends. `nonce` is random and used once."""

    def __init__(self, secret: str, nonce: bytes) -> None:
        self.challenge = encode_transfer_header(CHALLENGE_OFFSET, CHALLENGE_SIZE) + nonce
        self._secret = secret.encode()
        self._nonce = nonce
        self._received = b""

    def receive_data(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the answer and the bytes after the proof, None until that is whole. Raises HandshakeRefused."""
        self._received += data
        mark = encode_report(PROOF_OFFSET)
        if not self._received.startswith(mark[: len(self._received)]):
            raise HandshakeRefused("the slave has no haSharedSecret (Apache's never have)")
        if len(self._received) < PROOF_BYTES:
            return None
        proof, rest = self._received[:PROOF_BYTES], self._received[PROOF_BYTES:]
        theirs = proof[REPORT_BYTES : REPORT_BYTES + NONCE_BYTES]
        if not hmac.compare_digest(proof[-ANSWER_BYTES:], _sign(self._secret, b"slave", self._nonce, theirs)):
            raise HandshakeRefused("the slave's haSharedSecret is different")
        return _sign(self._secret, b"master", self._nonce, theirs), rest


class SlaveHandshake:
    """The slave's side. `awaits` says in words what has not come yet."""

    def __init__(self, secret: str, nonce: bytes) -> None:
        self.awaits = "it does not ask for haSharedSecret (Apache's never do)"
        self._secret = secret.encode()
        self._nonce = nonce
        self._received = b""
        self._expected = b""

    def receive_data(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return what to send, and the bytes after the master's answer, None until it is whole. Raises HandshakeRefused."""
        self._received += data
        proof = b"" if self._expected else self._prove()
        if not self._expected or len(self._received) < ANSWER_BYTES:
            return proof, None
        if not hmac.compare_digest(self._received[:ANSWER_BYTES], self._expected):
            raise HandshakeRefused("the master's haSharedSecret is different")
        return proof, self._received[ANSWER_BYTES:]

    def _prove(self) -> bytes:
        """Return the proof once the challenge is whole, and remove the challenge."""
        head = encode_transfer_header(CHALLENGE_OFFSET, CHALLENGE_SIZE)
        if not self._received.startswith(head[: len(self._received)]):
            raise HandshakeRefused("the master does not ask for haSharedSecret")
        if len(self._received) < HEADER_BYTES + NONCE_BYTES:
            return b""
        theirs = self._received[HEADER_BYTES : HEADER_BYTES + NONCE_BYTES]
        self._received = self._received[HEADER_BYTES + NONCE_BYTES :]
        self._expected = _sign(self._secret, b"master", theirs, self._nonce)
        self.awaits = "it refuses haSharedSecret"
        return encode_report(PROOF_OFFSET) + self._nonce + _sign(self._secret, b"slave", theirs, self._nonce)
