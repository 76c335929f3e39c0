"""Huffman's code of header texts (RFC 7541, 5.2 and appendix B).

The code is canonical: shorter codes come first, and codes of one length are in the order of their octets. So the lengths say
everything. A text is read octet by octet. What an octet means at a place of the code's tree is found out once and kept:
65,536 steps at most, and some hundreds with the texts of real clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twisted_mq.protocol.http2.errors import HeaderBlockError

END = 256
"""The symbol that is in no text. A text's last octet is filled with its first bits, which are ones."""
LENGTHS = (
    *(13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28),
    *(28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28),
    *(6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6),
    *(5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10),
    *(13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7),
    *(7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6),
    *(15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5),
    *(6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28),
    *(20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23),
    *(24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24),
    *(22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23),
    *(21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23),
    *(26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25),
    *(19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27),
    *(20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23),
    *(26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26),
    30,
)  # fmt: skip
"""The bits of each octet's code, and of END's."""
OCTET_BITS = 8


class CodeNode(dict[int, "tuple[bytes, CodeNode]"]):
    """A place in the code's tree: for an octet, the text that it completes and the place where it ends."""

    def __init__(self, may_end: bool) -> None:
        super().__init__()
        self.branches: list[CodeNode | int | None] = [None, None]
        """The place or the symbol behind a 0 and behind a 1."""
        self.may_end = may_end
        """True if the bits on the way here are what a text's last octet is filled with."""

    def __missing__(self, octet: int) -> tuple[bytes, CodeNode]:
        place, text = self, bytearray()
        for shift in range(OCTET_BITS - 1, -1, -1):
            found = place.branches[octet >> shift & 1]
            if isinstance(found, CodeNode):
                place = found
                continue
            if found is None or found == END:
                raise HeaderBlockError("a header's text has the end of Huffman's code")
            text.append(found)
            place = ROOT
        step = self[octet] = bytes(text), place
        return step


def codes() -> Iterator[tuple[int, int, int]]:
    """Yield each symbol with its code and the code's bits."""
    code = bits = 0
    for symbol in sorted(range(len(LENGTHS)), key=lambda one: (LENGTHS[one], one)):
        code <<= LENGTHS[symbol] - bits
        bits = LENGTHS[symbol]
        yield symbol, code, bits
        code += 1


def _tree(every: Iterable[tuple[int, int, int]]) -> CodeNode:
    root = CodeNode(may_end=True)
    for symbol, code, bits in every:
        place = root
        for depth in range(1, bits):
            bit = code >> (bits - depth) & 1
            found = place.branches[bit]
            if not isinstance(found, CodeNode):
                found = place.branches[bit] = CodeNode(place.may_end and bit == 1 and depth < OCTET_BITS)
            place = found
        place.branches[code & 1] = symbol
    return root


ROOT = _tree(codes())


def decode_huffman(data: bytes) -> bytes:
    """Return the text. Raises HeaderError."""
    place = ROOT
    found = []
    for octet in data:
        text, place = place[octet]
        found.append(text)
    if not place.may_end:
        raise HeaderBlockError("a header's text ends within a code of Huffman's")
    return b"".join(found)
