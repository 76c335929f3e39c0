"""The client is imported where its neighbours' libraries are not installed, and where the system is no Unix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layers import COLUMNS

ROOT = Path(__file__).parents[3]

WITHOUT = """
import asyncio, importlib.abc, os, sys  # asyncio asks the real system

LIBRARIES = {"numpy", "sqlglot", "rich", "click", "pyspark", "pyarrow", "pandas", "matplotlib", "javaproperties"}
UNIX = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog", "_posixshmem"}
UNIX_CALLS = ("posix_fallocate posix_fadvise fdatasync pread preadv pwrite pwritev sendfile fork forkpty setsid getuid"
              " geteuid getgid getegid getgroups uname statvfs fstatvfs sysconf mkfifo lockf killpg chown").split()

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LIBRARIES | UNIX:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for name in UNIX_CALLS:
    vars(os).pop(name, None)
for name in UNIX:
    sys.modules.pop(name, None)
"""


def modules(*packages: str) -> list[str]:
    """Return the names of all modules below these folders of twisted_mq, except those that only a broker loads, with numpy."""
    package = ROOT / "twisted_mq"
    paths = [path.relative_to(package) for one in packages for path in sorted((package / one).rglob("*.py"))]
    return [f"twisted_mq.{'.'.join(path.with_suffix('').parts)}" for path in paths if path.as_posix() not in COLUMNS]


@pytest.mark.parametrize("package", ["client", "protocol", "remoting", "routing"])
def test_import_needs_no_library_of_others_and_no_unix(package: str) -> None:
    names = ["twisted_mq.client", *modules(package)]
    program = f"{WITHOUT}\nimport {', '.join(names)}\nprint(sorted((LIBRARIES | UNIX) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
