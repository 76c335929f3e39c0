"""The types that members of bodies are declared with, and how a member is named on the wire.

A member travels under its attribute's name in camel case; `metadata=wire("lockOKMQSet")` says otherwise. All members
have a default, as in Apache, where whatever is missing keeps the value that a fresh object has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import attrs

from twisted_mq.protocol.codes import LANGUAGES
from twisted_mq.protocol.text.java import camel_case


@attrs.frozen
class Bits:
    """An integer of so many bits, with sign."""

    count: int


@attrs.frozen
class Names:
    """A Java enum, held as the constant's name. Other languages' clients send the ordinal: the index in `names`."""

    names: tuple[str, ...]


Int32 = Annotated[int, Bits(32)]
Int64 = Annotated[int, Bits(64)]

PASSIVELY, ACTIVELY = "CONSUME_PASSIVELY", "CONSUME_ACTIVELY"
ConsumeType = Annotated[str, Names(("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"))]
BROADCASTING, CLUSTERING = "BROADCASTING", "CLUSTERING"
MessageModel = Annotated[str, Names((BROADCASTING, CLUSTERING))]
ConsumeFromWhere = Annotated[
    str,
    Names(
        (
            "CONSUME_FROM_LAST_OFFSET",
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
            "CONSUME_FROM_MIN_OFFSET",
            "CONSUME_FROM_MAX_OFFSET",
            "CONSUME_FROM_FIRST_OFFSET",
            "CONSUME_FROM_TIMESTAMP",
        )
    ),
]
TopicFilterType = Annotated[str, Names(("SINGLE_TAG", "MULTI_TAG"))]
MessageRequestMode = Annotated[str, Names(("PULL", "POP"))]
LanguageCode = Annotated[str, Names(LANGUAGES)]
GroupRetryPolicyType = Annotated[str, Names(("EXPONENTIAL", "CUSTOMIZED"))]
CMResult = Annotated[
    str, Names(("CR_SUCCESS", "CR_LATER", "CR_ROLLBACK", "CR_COMMIT", "CR_THROW_EXCEPTION", "CR_RETURN_NULL"))
]


def wire(name: str, *, written: bool = True, older: str | None = None) -> dict[str, object]:
    """Return metadata of a member: its name on the wire, whether it is written or only read, and the name that older
    peers use.
    """
    return {"wire": name, "written": written, "older": older}


def wire_name(attribute: str, metadata: Mapping[str, object]) -> str:
    """Return the wire name: `broker_addrs` travels as brokerAddrs unless its metadata says otherwise."""
    if "wire" in metadata:
        return str(metadata["wire"])
    return camel_case(attribute)
