"""Signatures of requests (Apache: AclClientRPCHook, AclUtils, AclSigner): HMAC-SHA1 in Base64, in the field `Signature`.

The signed text is the values of all other fields, in the order in which Java sorts their names, and then the body:

    {"AccessKey":"ada","topic":"T"}, body b"x"  ->  b"adaTx"

Neither the code nor the opaque nor a time is part of it: a signed request can be sent again by anyone who has seen it.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import hmac
import operator
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha1
from itertools import repeat

import attrs

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.shapes import Columns, Family, around_values

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
V4_9_3 = 399
"""MQVersion ordinal; clients up to it add UNIQUE_KEY_QUERY after they have signed."""


@attrs.frozen
class Credentials:
    """The signer: a user's name, the secret that only the user and the servers know, and a cloud's token if there is one."""

    access_key: str
    secret_key: str = attrs.field(repr=False)
    security_token: str | None = attrs.field(default=None, repr=False)


Values = Callable[[Mapping[str, str]], tuple[str, ...]]

_VALUES: dict[tuple[str, ...], Values] = {}
"""The function that takes the signed values out of fields, by their names: a client's requests of one kind all have the same."""
_MOST_VALUES = 1000
_LATEST: dict[int, Values] = {}
"""The one that was used last for so many fields: where it finds all its names in as many, they are the same names."""
_MOST_FIELDS = 64
_MOST_CHARACTERS = 2000
"""The limit of the field names of one request in characters, taken together. Longer ones are not noted."""
_BLOCK_BYTES = 64
_INNER, _OUTER = (bytes(byte ^ mask for byte in range(256)) for mask in (0x36, 0x5C))
"""The translations of a key's bytes before and after the content (RFC 2104)."""


def signature_of(fields: Mapping[str, str], body: bytes, secret_key: str) -> str:
    """Return the signature over these fields, without `Signature` if it is one of them, and the body."""
    values, is_known = _signed_values(fields)
    if not is_known:
        _remember(fields)
    return _signature(values, body, secret_key).decode()


def _signed_values(fields: Mapping[str, str]) -> tuple[tuple[str, ...], bool]:
    """Return all values except the signature, in the order in which they are signed, and whether such fields were the latest."""
    try:
        return _LATEST[len(fields) - (SIGNATURE in fields)](fields), True
    except KeyError:
        return _values(fields)(fields), False


def _signature(values: tuple[str, ...], body: bytes, secret_key: str) -> bytes:
    return _digest(_signed_bytes("".join(values)) + body, *_keyed(secret_key))


def _signed_bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _digest(signed: bytes, before: hashlib._Hash, key: bytes) -> bytes:
    inner = before.copy()
    inner.update(signed)
    return binascii.b2a_base64(sha1(key + inner.digest()).digest(), newline=False)


@functools.lru_cache(maxsize=1000)
def _keyed(secret_key: str) -> tuple[hashlib._Hash, bytes]:
    """HMAC-SHA1's inner digest with the key in it, to be copied, and the key of the outer one, which is so short that a copy
    would take longer: 0.4 of what hmac.digest takes.
    """
    key = secret_key.encode()
    key = (sha1(key).digest() if len(key) > _BLOCK_BYTES else key).ljust(_BLOCK_BYTES, b"\0")
    return sha1(key.translate(_INNER)), key.translate(_OUTER)


def _values(fields: Mapping[str, str]) -> Values:
    """Return the function that takes all values but the signature, in the order in which they are signed."""
    names = (*fields,)
    return _VALUES.get(names) or _values_of(_in_java_order([name for name in names if name != SIGNATURE]))


def _remember(fields: Mapping[str, str]) -> None:
    """Note how the values of fields with these names are taken, for the next ones; called when the signature was right.

    A sender without a right signature leaves nothing here. When there are too many names all are noted again.
    """
    count = len(fields) - (SIGNATURE in fields)
    names = (*fields,)
    if count > _MOST_FIELDS or sum(map(len, names)) > _MOST_CHARACTERS:
        return
    if names not in _VALUES:
        if len(_VALUES) >= _MOST_VALUES:
            _VALUES.clear()
        _VALUES[names] = _values(fields)
    _LATEST[count] = _VALUES[names]


def _values_of(names: Sequence[str]) -> Values:
    if len(names) > 1:
        return operator.itemgetter(*names)
    return lambda fields: tuple(fields[name] for name in names)


def _in_java_order(names: Sequence[str]) -> list[str]:
    """Sort names as Java does, by their UTF-16 units; Python compares code points."""
    if "".join(names).isascii():
        return sorted(names)
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def sign(command: RemotingCommand, credentials: Credentials) -> None:
    """Add the fields that prove who sends the command; what it had of them before is replaced."""
    fields = {**command.ext_fields, ACCESS_KEY: credentials.access_key}
    fields.pop(SIGNATURE, None)
    if credentials.security_token is not None:
        fields[SECURITY_TOKEN] = credentials.security_token
    fields[SIGNATURE] = signature_of(fields, command.body, credentials.secret_key)
    command.replace_fields(fields)


def is_signed(command: RemotingCommand, secret_key: str) -> bool:
    """Return whether the sender of a request knew the secret. Takes as long for a wrong signature as for a right one."""
    signed = command.ext_fields
    given = signed.get(SIGNATURE)
    if given is None:
        return False
    if command.version <= V4_9_3 and UNIQUE_KEY_QUERY in signed:
        signed = {name: value for name, value in signed.items() if name != UNIQUE_KEY_QUERY}
    values, is_known = _signed_values(signed)
    is_right = hmac.compare_digest(_signature(values, command.body, secret_key), given.encode(errors="replace"))
    if is_right and not is_known:
        _remember(signed)
    return is_right


@attrs.frozen
class SignedColumns:
    """Finds the signed text of requests of one family in their columns. All have the same names of fields.

    `text` has the parts that are the same in all, and the indexes of columns. `given` is the column of the signatures. Bodies
    are the last column.
    """

    text: tuple[bytes | int, ...]
    given: int

    def count_right(self, columns: Columns, secret_key: str) -> int:
        """Return how many requests, from the first one on, were signed with the secret. Values are taken as they are: they
        have no escapes.
        """
        before, key = _keyed(secret_key)
        parts = [columns[part] if isinstance(part, int) else repeat(part) for part in self.text]
        signed = map(b"".join, zip(*parts, columns[-1], strict=False))  # what repeats has no end
        right = (
            hmac.compare_digest(_digest(text, before, key), given)
            for text, given in zip(signed, columns[self.given], strict=True)
        )
        return next((index for index, is_right in enumerate(right) if not is_right), len(columns[-1]))


def signed_columns(family: Family, command: RemotingCommand, properties: str | None) -> SignedColumns | None:
    """Return the signed columns of a family to which the command belongs; None if its signatures do not vary, or it is signed
    in another way. `properties` is the field in which values of properties vary.
    """
    fields = command.ext_fields
    if SIGNATURE not in family.names or UNIQUE_KEY_QUERY in fields:
        return None
    text: list[bytes | int] = []
    for name in _in_java_order([name for name in fields if name != SIGNATURE]):
        if name in family.names:
            text.append(family.place(name))
        elif name == properties:
            first, *others = around_values(fields[name], family.property_places)
            text.append(_signed_bytes(first))
            for place, after in zip(family.property_places.values(), others, strict=True):
                text += place, _signed_bytes(after)
        else:
            text.append(_signed_bytes(fields[name]))
    return SignedColumns(tuple(text), family.place(SIGNATURE))
