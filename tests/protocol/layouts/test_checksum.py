"""CRC-32 of whichever library is installed."""

from __future__ import annotations

import subprocess
import sys
import zlib

from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.checksum import crc32

WITHOUT = """
import sys
sys.modules["isal"] = None
from twisted_mq.protocol.layouts.checksum import crc32
import zlib
print(crc32 is zlib.crc32)
"""


@given(data=st.binary(max_size=300), times=st.integers(1, 40))
def test_it_is_zlibs(data: bytes, times: int) -> None:
    whole = data * times
    assert crc32(whole) == zlib.crc32(whole)
    assert crc32(memoryview(whole)[1:]) == zlib.crc32(memoryview(whole)[1:])


def test_it_is_isa_ls_where_that_is_installed() -> None:
    assert crc32.__module__ == "isal.isal_zlib"


def test_the_base_of_the_client_has_zlibs() -> None:
    found = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert found.stdout == "True\n"
