"""`make test`: the project's own tests, and beside them those with Apache's programs, which wait most of the time.

python -m tests.side_by_side

The output of the first comes as it is made, that of the others when the first have ended. Ends with 1 where anything failed.

Apache's programs have deadlines of their own, which a machine that is slow and full at once breaks. So up to `MOST_AGAIN` tests
with them that failed run once more when nothing else does, and are named with both results; only the second counts. The project's
own tests have no such second time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest"]
OWN = {
    "pytest": [*PYTEST, "-m", "not trial", "tests"],
    "trial": [sys.executable, "-m", "twisted.trial", "tests.twisted_mq"],
    "newest Python": [sys.executable, "-m", "tests.newest_python"],
}
SOME_FAILED = 1
"""What pytest ends with then; an error of another kind is another number."""
MOST_AGAIN = 4


class WithPeers:
    """The tests in `tests`; what failed is noted in `folder`."""

    def __init__(self, folder: Path, tests: str = "interop") -> None:
        self._command = [*PYTEST, "-o", "addopts=-q --strict-markers", "-o", f"cache_dir={folder}", tests]
        self._failed = folder / "v" / "cache" / "lastfailed"

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output)

    def again(self) -> int:
        """The exit code of those that failed, alone now; as before where they are too many."""
        failed = sorted(json.loads(self._failed.read_text()))
        if len(failed) > MOST_AGAIN:
            return SOME_FAILED
        code = subprocess.run([*self._command, "--last-failed"]).returncode
        for test in failed:
            print(f"failed beside the others, {'passed' if code == 0 else 'not all passed'} alone: {test}", flush=True)
        return code


def main() -> int:
    """The exit code."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with_peers, log = WithPeers(Path(folder)), Path(folder) / "log"
        with with_peers.start(log) as beside:
            try:
                codes = {name: subprocess.run(command).returncode for name, command in OWN.items()}
                codes["with peers"] = beside.wait()
            except BaseException:
                beside.terminate()
                raise
        print(f"with peers:\n{log.read_text(errors='replace')}", flush=True)
        if codes["with peers"] == SOME_FAILED:
            codes["with peers"] = with_peers.again()
    failed = any(codes.values())
    told = ", ".join(f"{name} {code}" for name, code in codes.items())
    print(f"{'FAILED' if failed else 'passed'} after {(time.monotonic() - began) / 60:.0f} minutes: {told}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
