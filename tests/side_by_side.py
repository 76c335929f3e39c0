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
OWN = ([*PYTEST, "-m", "not trial", "tests"], [sys.executable, "-m", "twisted.trial", "tests.twisted_mq"])
WITH_PEERS = [*PYTEST, "interop"]


def main() -> int:
    """The exit code."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(WITH_PEERS, stdout=log, stderr=log) as beside:
        try:
            codes = [subprocess.run(command).returncode for command in OWN]
            codes.append(beside.wait())
        except BaseException:
            beside.terminate()
            raise
        log.seek(0)
        print(f"{' '.join(WITH_PEERS[1:])}:\n{log.read()}", flush=True)
    print(f"{'passed' if not any(codes) else 'FAILED'} after {(time.monotonic() - began) / 60:.0f} minutes: "
          f"pytest {codes[0]}, trial {codes[1]}, with peers {codes[2]}")  # fmt: skip
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
