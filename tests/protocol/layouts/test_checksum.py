"""CRC-32 of whichever library is installed."""

from __future__ import annotations

import runpy
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts import checksum
from twisted_mq.protocol.layouts.checksum import crc32


@given(data=st.binary(max_size=300), times=st.integers(1, 40))
def test_it_is_zlibs(data: bytes, times: int) -> None:
    whole = data * times
    assert crc32(whole) == zlib.crc32(whole)
    assert crc32(memoryview(whole)[1:]) == zlib.crc32(memoryview(whole)[1:])


def test_it_is_isa_ls_where_that_is_installed() -> None:
    assert crc32.__module__ == "isal.isal_zlib"


def test_the_base_of_the_client_has_zlibs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("isal", "isal.isal_zlib"):
        monkeypatch.setitem(sys.modules, name, None)
    assert runpy.run_path(checksum.__file__)["crc32"] is zlib.crc32
