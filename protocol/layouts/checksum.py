"""CRC-32 as zlib computes it, by the quickest library that is installed.

ISA-L's takes 0.06 us for 128 bytes and 0.12 us for 4 KiB, zlib's 0.16 and 1.09 us (Debian 12, one core). The extras `broker` and
`spark` install it; the client's base has zlib alone.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
