"""Failures of commands: one line that says what is wrong and what to do next, and exit code 1."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from twisted_mq.admin.errors import AdminError


class CliError(AdminError):
    """What is wrong, and what the person at the keyboard can do about it."""


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """Text for a terminal: what comes from servers and messages moves no cursor and changes no title."""
    return text.translate(_CONTROLS)


def report(command: str, error: BaseException | str) -> None:
    """One line on standard error."""
    print(harmless(f"{command}: {' '.join(str(error).split())}"), file=sys.stderr, flush=True)


def fail(command: str, error: BaseException | str) -> NoReturn:
    """One line on standard error, then exit code 1."""
    report(command, error)
    raise SystemExit(1)


def escape_odd_output() -> None:
    """Print what the output's encoding lacks, as bytes of an argument that are no text, with escapes, like standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def end_with_closed_pipe() -> NoReturn:
    """Whoever read the output has gone (`... | head`): exit code 1 without a word."""
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
"""Module -> class. What is not loaded was not raised: no command loads classes that it does not use."""


def is_expected(error: BaseException) -> bool:
    """Whether an error is one that its text explains; any other is a defect and keeps its traceback."""
    return isinstance(error, (AdminError, OSError, *_loaded()))


def _loaded() -> Iterator[type[BaseException]]:
    for module, name in _EXPECTED.items():
        if module in sys.modules:
            yield getattr(sys.modules[module], name)
