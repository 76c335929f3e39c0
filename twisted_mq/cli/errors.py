"""Reports failures of commands: one line that says what is wrong and what to do next, and exit code 1."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from twisted_mq.admin.errors import AdminError


class CliError(AdminError):
    """Raised for a failure; the text says what is wrong and what the user can do about it."""


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """Return text for a terminal: texts from servers and messages cannot move the cursor or change the title."""
    return text.translate(_CONTROLS)


def report(command: str, error: BaseException | str) -> None:
    """Print one line on standard error."""
    print(harmless(f"{command}: {' '.join(str(error).split())}"), file=sys.stderr, flush=True)


def fail(command: str, error: BaseException | str) -> NoReturn:
    """Print one line on standard error, then end with exit code 1."""
    report(command, error)
    raise SystemExit(1)


def escape_odd_output() -> None:
    """Print with escapes what the output's encoding lacks, such as bytes of an argument that are not text, like standard
    error.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def end_with_closed_pipe() -> NoReturn:
    """End with exit code 1 and no message, because the reader of the output has gone (`... | head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(1)


_EXPECTED = {
    "twisted_mq.client.core.errors": "ClientError",
    "twisted_mq.config.errors": "ConfigError",
    "twisted_mq.extras": "MissingExtra",
    "twisted_mq.protocol.errors": "ProtocolError",
    "twisted_mq.remoting.errors": "RemotingError",
    "twisted_mq.remoting.listen": "PortError",
    "twisted_mq.storage.errors": "StoreError",
}
"""Module -> class. A class that is not loaded was not raised: no command loads classes that it does not use."""


def is_expected(error: BaseException) -> bool:
    """Return True if an error's text explains it; any other is a defect and keeps its traceback."""
    return isinstance(error, (AdminError, OSError, *_loaded()))


def _loaded() -> Iterator[type[BaseException]]:
    for module, name in _EXPECTED.items():
        if module in sys.modules:
            yield getattr(sys.modules[module], name)
