"""The search in a mapped file: equal to that in bytes, and nothing is read behind the mapping."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.storage.files.search import positions_in

ROOT = Path(__file__).parents[3]
SEARCH = """
import mmap, sys
from twisted_mq.storage.files.{module} import {kind}

path, size, fillers = sys.argv[1], mmap.PAGESIZE, []
for _ in range(200):  # until a page that cannot be read lies behind the mapping
    guard, file = mmap.mmap(-1, size, prot=0), {kind}(path, 0, size)
    file.{view}
    areas = [line.split()[0].split("-") + [line] for line in open("/proc/self/maps")]
    (begin, end), = [(begin, end) for begin, end, line in areas if path in line]
    if any(other == end and "---" in line for other, _, line in areas):
        break
    del file, guard
    fillers.append(mmap.mmap(-1, size))  # takes a hole that the next mapping would get
else:
    sys.exit("no mapping came before a guard")
found = [list(file.find_all(b"fo", start)) for start in range(size - 9, size)]
assert found == [[size - 2]] * 8 + [[]], found
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the areas of the process")
@pytest.mark.parametrize(
    ("module", "kind", "view"), [("files_at_rest", "FileAtRest", "readable"), ("mapped_file", "MappedFile", "view")]
)
@pytest.mark.parametrize("end", [b"fo", b"xo"])
def test_no_byte_behind_the_mapping_is_read(tmp_path: Path, module: str, kind: str, view: str, end: bytes) -> None:
    path = tmp_path / "00000000000000000000"
    path.write_bytes(b"x" * (mmap.PAGESIZE - 2) + end)
    program = SEARCH.format(module=module, kind=kind, view=view)
    if end != b"fo":
        program = program.replace("[[size - 2]] * 8 + [[]]", "[[]] * 9")
    done = subprocess.run([sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@given(st.text("ab", max_size=30), st.text("ab", min_size=1, max_size=3), st.integers(0, 32))
def test_positions_are_those_of_bytes(text: str, wanted: str, start: int) -> None:
    data, pattern = text.encode(), wanted.encode()
    with mmap.mmap(-1, max(1, len(data))) as mapped:
        mapped[: len(data)] = data
        for end in range(start, len(data) + 1):
            expected = [
                one
                for one in range(start, end)
                if data[one : one + len(pattern)] == pattern and one + len(pattern) <= end
            ]
            assert list(positions_in(mapped, pattern, start, end)) == expected
            assert list(positions_in(data, pattern, start, end)) == expected
