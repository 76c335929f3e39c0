"""`make test`: the project's own tests, and beside them those with Apache's programs, which wait most of the time.

python -m tests.side_by_side

The output of the first comes as it is made, that of the others when the first have ended. Ends with 1 where anything failed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

PYTEST = [sys.executable, "-m", "pytest"]
OWN = {
    "pytest": [*PYTEST, "-m", "not trial", "tests"],
    "trial": [sys.executable, "-m", "twisted.trial", "tests.twisted_mq"],
    "newest Python": [sys.executable, "-m", "tests.newest_python"],
}
WITH_PEERS = [*PYTEST, "interop"]


def main() -> int:
    """The exit code."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(WITH_PEERS, stdout=log, stderr=log) as beside:
        try:
            codes = {name: subprocess.run(command).returncode for name, command in OWN.items()}
            codes["with peers"] = beside.wait()
        except BaseException:
            beside.terminate()
            raise
        log.seek(0)
        print(f"{' '.join(WITH_PEERS[1:])}:\n{log.read()}", flush=True)
    failed = any(codes.values())
    told = ", ".join(f"{name} {code}" for name, code in codes.items())
    print(f"{'FAILED' if failed else 'passed'} after {(time.monotonic() - began) / 60:.0f} minutes: {told}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
