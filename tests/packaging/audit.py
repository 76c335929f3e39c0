"""Known vulnerabilities of what constraints.txt pins: `python -m tests.packaging.audit`, a part of `make check`.

Without a package index that tells them nothing is audited, and the check goes on: it says so.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
TOLD_BY = "https://pypi.org/pypi/pip/json"
"""Address that pip-audit asks, with the name of each package instead of pip."""
TIMEOUT_SECONDS = 10


def why_not(url: str = TOLD_BY) -> str | None:
    """Why vulnerabilities cannot be asked for here; None where they can."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            told = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return str(error)
    return None if "vulnerabilities" in told else f"{url} tells no vulnerabilities"


def audit(constraints: Path = CONSTRAINTS) -> int:
    """pip-audit's exit code: 0 where nothing is known."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner=off", "--disable-pip", "--require-hashes"]
    return subprocess.run([*command, "--requirement", str(constraints)], check=False).returncode


def main() -> None:
    reason = why_not()
    if reason is not None:
        print(f"dependencies not audited, no package index tells their vulnerabilities: {reason}")
        return
    sys.exit(audit())


if __name__ == "__main__":
    main()
