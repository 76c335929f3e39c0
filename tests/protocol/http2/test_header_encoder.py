"""Blocks of answers: hpack reads from them what was given, whatever its table's size."""

from __future__ import annotations

from hpack.hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.http2.header_encoder import MOST_KEPT, HeaderEncoder, number, text

REPEATED = (
    (b":status", b"200"),
    (b"content-type", b"application/grpc"),
    (b"x-long", b"v" * 300),
    (b"grpc-status", b"0"),
)
PAIRS = st.one_of(
    st.sampled_from(REPEATED),
    st.sampled_from([(b":status", b"405"), (b"grpc-status", b"14"), (b"content-type", b"text/html"), (b"te", b"")]),
    st.tuples(st.binary(min_size=1, max_size=200), st.binary(max_size=200)),
)
BLOCKS = st.lists(
    st.one_of(st.lists(PAIRS, max_size=5).map(tuple), st.sampled_from([0, 100, 4096, 65_536])), max_size=12
)


@given(BLOCKS)
def test_hpack_reads_what_was_given(steps):
    encoder, decoder = HeaderEncoder(REPEATED), Decoder()
    for step in steps:
        if isinstance(step, int):
            encoder.limit_table(step)
            decoder.max_allowed_table_size = max(step, 0)
            if step >= 4096:
                continue
            decoder.header_table_size = step
        else:
            for _ in range(2):  # the second time it is kept
                found = decoder.decode(encoder.encode(step), raw=True)
                assert tuple((bytes(name), bytes(value)) for name, value in found) == step


def test_repeated_headers_become_one_byte_each():
    encoder = HeaderEncoder(REPEATED)
    assert len(encoder.encode(REPEATED)) > 300
    assert [len(encoder.encode(REPEATED)), len(encoder.encode(REPEATED[:1]))] == [4, 1]


def test_other_headers_never_enter_the_table_and_few_blocks_are_kept():
    encoder, decoder = HeaderEncoder(REPEATED), Decoder()
    for place in range(100):
        decoder.decode(encoder.encode(((b"grpc-message", b"%d" % place),)))
    assert not decoder.header_table.dynamic_entries
    assert len(encoder._kept) <= MOST_KEPT


def test_numbers_are_those_of_the_rfc():
    """RFC 7541, C.1."""
    assert (number(0, 5, 10), number(0, 5, 1337), number(0, 8, 42)) == (b"\x0a", b"\x1f\x9a\x0a", b"\x2a")
    assert text(b"custom-key") == b"\x0acustom-key"
