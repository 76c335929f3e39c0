"""Reads and writes files for subcommands. System errors are raised as CliError."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TypeVar

from twisted_mq.cli.errors import CliError
from twisted_mq.protocol.bodies import decode_body
from twisted_mq.protocol.errors import BodyError

B = TypeVar("B")

LONGEST_NAME = 200
"""The most characters of a file's name from a client's text; file systems have 255 bytes."""


def read_bytes(path: str) -> bytes:
    """Return a whole file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error


def read_list(body_class: type[B], path: str) -> list[B]:
    """Return the bodies in a file with a JSON list, at least one."""
    try:
        found: list[B] = decode_body(list[body_class], read_bytes(path))  # type: ignore[valid-type]
    except BodyError as error:
        raise CliError(f"{path}: {error}") from error
    if not found:
        raise CliError(f"{path} contains an empty list")
    return found


def write_file(folder: str, name: str, data: bytes) -> str:
    """Write a file into a folder, which is created if missing; return its path."""
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    return path


def write_private_file(name: str, data: bytes) -> str:
    """Write a file into a new folder, which only its owner can open; return its path."""
    return write_file(tempfile.mkdtemp(prefix="mqadmin-"), file_name(name), data)


def file_name(text: str) -> str:
    """Return a file name from a client's text: nothing in it leads out of the folder."""
    return re.sub(rf"[\0{os.sep}]", "_", text).lstrip(".")[:LONGEST_NAME] or "_"
