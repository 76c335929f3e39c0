"""Values of a record whose fields are measured by others, read by the runs of its declaration."""

from __future__ import annotations

import construct
import pytest

from twisted_mq.protocol.layouts.derive import LengthError, derive_runs
from twisted_mq.protocol.layouts.derive_values import value_reader

NOTE = construct.Struct(
    "number" / construct.Int16ub,
    "size" / construct.Int8ub,
    "text" / construct.Bytes(construct.this.size),
    "last" / construct.Int8ub,
)


def test_whole_record_is_read_as_a_tuple() -> None:
    read = value_reader(derive_runs(NOTE))
    data = NOTE.build({"number": 7, "size": 3, "text": b"abc", "last": 9})
    assert read(data) == tuple(value for name, value in NOTE.parse(data).items() if name != "_io")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "text of 3 bytes, 0 are left"),
        (b"\0\7\3abc", "last of 1 bytes, 0 are left"),
        (b"\0\7\3abc\x09\0", "last of 7 bytes, 8 are left"),
        (b"\0\7\4abc", "text of 4 bytes, 3 are left"),
    ],
)
def test_other_lengths_are_refused_with_the_field(data: bytes, text: str) -> None:
    with pytest.raises(LengthError, match=f"^{text}$"):
        value_reader(derive_runs(NOTE))(data)
