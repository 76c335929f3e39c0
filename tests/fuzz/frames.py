"""Frames of all codes from one seed: most of them well formed, some damaged in the places where a decoder looks."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import attrs

from tests.fuzz import values
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.registry import REQUESTS
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand, SerializeType
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame

LEFT_OUT = frozenset({RequestCode.UPDATE_BROKER_CONFIG, RequestCode.UPDATE_NAMESRV_CONFIG})
"""Codes of an administrator: after them the honest client's sends would be refused correctly."""
DAMAGED = 0.03
UNKNOWN = 0.02
OTHERS = 0.05
"""Requests that other servers serve."""


class FrameMaker:
    """Frames for servers of these roles (broker, namesrv); the same seed makes the same frames."""

    def __init__(self, random: Random, roles: Collection[str]) -> None:
        self._random = random
        known = sorted(set(REQUESTS) - LEFT_OUT)
        self._codes = [code for code in known if set(REQUESTS[code].served_by) & set(roles)]
        self._others = [code for code in known if code not in self._codes]

    def connection(self, count: int) -> list[bytes]:
        """The frames of one connection."""
        return [self.frame() for _ in range(count)]

    @staticmethod
    def answers(received: bytes) -> int:
        """Return the number of received answers. Raises FrameError if the bytes are not answers."""
        return len(FrameDecoder().receive_data(received))

    def frame(self) -> bytes:
        """The next frame."""
        encoded = encode_frame(self.command())
        return damaged(self._random, encoded) if self._random.random() < DAMAGED else encoded

    def command(self) -> RemotingCommand:
        """A request with the fields of its header, some left out, and a body."""
        random = self._random
        if random.random() < UNKNOWN:
            return RemotingCommand(random.choice((0, -1, 9999, 2**31 - 1)) & 0xFFFF, body=random.randbytes(9))
        code = random.choice(self._others if random.random() < OTHERS else self._codes)
        spec = REQUESTS[code]
        fields = self._fields(spec.request_header)
        body = values.body(random, spec.request_body, fields)
        return RemotingCommand(
            int(code),
            opaque=random.getrandbits(31),
            flag=ONE_WAY_FLAG if random.random() < 0.05 else 0,
            language=random.choice(("JAVA", "CPP", "GO")),
            body=body,
            serialize_type=random.choice((SerializeType.JSON, SerializeType.ROCKETMQ)),
            ext_fields=fields,
        )

    def _fields(self, header: type | None) -> dict[str, str]:
        random = self._random
        declared = attrs.fields(header) if header is not None else ()
        fields = {
            one.metadata["wire"]: values.field(random, one.metadata["wire"], one.metadata["kind"])
            for one in declared
            if random.random() < (0.95 if one.default is attrs.NOTHING else 0.5)
        }
        if random.random() < 0.05:
            fields[values.text(random)] = values.text(random)
        return fields


def damaged(random: Random, encoded: bytes) -> bytes:
    """A length that lies, a flipped bit, an end or a beginning that is missing."""
    data = bytearray(encoded)
    kind = random.randrange(4)
    if kind == 0:
        data[random.randrange(8)] = random.getrandbits(8)
    elif kind == 1:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == 2:
        del data[random.randrange(len(data)) :]
    else:
        del data[: random.randrange(len(data))]
    return bytes(data)
