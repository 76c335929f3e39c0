"""Header blocks: the same as hpack's decoder finds, and the same refusals."""

from __future__ import annotations

import pytest
from hpack.exceptions import HPACKError
from hpack.hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.http2.errors import HeaderBlockError, HeadersTooLarge, Http2Error
from twisted_mq.protocol.http2.header_decoder import HeaderDecoder

NAMES = st.one_of(
    st.sampled_from([b":path", b":method", b"te", b"content-type", b"x-mq-client-id", b"x-mq-request-id"]),
    st.binary(max_size=200),
)
HEADERS = st.lists(st.tuples(NAMES, st.binary(max_size=200)), max_size=8)


def decoded(decoder: Decoder | HeaderDecoder, block: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the headers, None for a block that is refused."""
    try:
        found = decoder.decode(block) if isinstance(decoder, HeaderDecoder) else decoder.decode(block, raw=True)
    except (HPACKError, IndexError, Http2Error):
        return None
    return [(bytes(name), bytes(value)) for name, value in found]


@given(st.lists(st.tuples(HEADERS, st.booleans(), st.sampled_from([None, 0, 100, 4096])), max_size=8))
def test_blocks_of_an_encoder_are_read_with_their_tables(blocks):
    encoder, ours = Encoder(), HeaderDecoder()
    for headers, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        assert decoded(ours, encoder.encode(headers, huffman=huffman)) == headers


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_bytes_are_read_or_refused_as_by_hpack(blocks):
    theirs, ours = Decoder(), HeaderDecoder()
    for block in blocks:
        expected = decoded(theirs, block)
        assert decoded(ours, block) == expected
        if expected is None:
            return  # the connection ends here


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",  # index 0
        b"\xbe",  # beyond the dynamic table
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x00\x7f\xff\xff\xff\x7f",  # a length of 256 MiB
        b"\x40\x01a",
        b"\x3f\xe2\x1f",  # a table of 4097 bytes
        b"\x82\x20",  # the table's size after a header
        b"\x00\x84\xff\xff\xff\xff\x01a",  # the end of Huffman's code in a text
        b"\x00\x81\xfe\x01a",  # a text that ends within a code
        b"\x00\x82\x1f\xff\x01a",  # filled with more than seven bits
    ],
)
def test_block_is_refused(block):
    with pytest.raises(HeaderBlockError):
        HeaderDecoder().decode(block)


def test_headers_past_the_limit_are_refused_where_they_pass_it():
    decoder = HeaderDecoder(1000)
    decoder.decode(b"\x40\x01a\x0f" + b"x" * 15 + b"\xbe" * 19)  # 48 bytes each
    with pytest.raises(HeadersTooLarge):
        decoder.decode(b"\xbe" * 21)
