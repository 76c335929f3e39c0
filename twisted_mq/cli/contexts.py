"""Keeps named clusters in a user's file: how each is reached, and which one is the default.

<XDG_CONFIG_HOME>/mq/contexts.json   {"inUse":"prod","contexts":{"prod":{"namesrv":"10.0.0.1:9876","tls":true}}}

It may hold secrets: only its owner can read it.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Container, Mapping

import attrs
import msgspec

from twisted_mq.cli.errors import CliError, report

MODE = 0o600
NOBODY_ELSE = 0o077
"""The umask that gives files and folders to their owner only."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")

Kept = Mapping[str, "str | bool"]


class _File(msgspec.Struct):
    inUse: str | None = None
    contexts: dict[str, dict[str, str | bool]] = {}


@attrs.frozen
class Contexts:
    """The contexts of a file by name, in the order in which they were added."""

    in_use: str | None = None
    by_name: Mapping[str, Kept] = attrs.field(factory=dict, repr=False)

    def named(self, name: str) -> Kept:
        """Return the settings of a context. Raises CliError."""
        if name in self.by_name:
            return self.by_name[name]
        similar = difflib.get_close_matches(name, self.by_name, 1)
        meant = f"did you mean {similar[0]}? " if similar else ""
        raise CliError(f"context {name} does not exist", f"{meant}`mq context list` shows all contexts")

    def with_context(self, name: str, kept: Kept, *, use: bool) -> Contexts:
        """Return contexts with one added or replaced; the first one added is in use."""
        return Contexts(name if use or not self.by_name else self.in_use, {**self.by_name, name: kept})

    def without(self, name: str) -> Contexts:
        """Return contexts without one. Raises CliError if it does not exist."""
        self.named(name)
        rest = {one: kept for one, kept in self.by_name.items() if one != name}
        return Contexts(None if self.in_use == name else self.in_use, rest)


def contexts_path(environ: Mapping[str, str]) -> str:
    """Return the path of a user's contexts."""
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "mq", "contexts.json")


def checked_name(name: str) -> str:
    """Return the name. Raises CliError if it is not allowed."""
    if _NAME.match(name) is None:
        raise CliError(f"{name!r} is not a valid context name", "use letters, digits and . _ -")
    return name


def read_contexts(path: str, settings: Container[str]) -> Contexts:
    """Return all contexts; none without a file. Raises CliError for a malformed file, or one with unknown settings."""
    try:
        with open(path, "rb") as file:
            loose = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & NOBODY_ELSE
            read = msgspec.json.decode(file.read(), type=_File)
    except FileNotFoundError:
        return Contexts()
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise CliError(f"{path}: {error}", "correct or remove it") from None
    unknown = [name for kept in read.contexts.values() for name in kept if name not in settings]
    if unknown:
        raise CliError(f"{path}: unknown setting {unknown[0]!r}", "correct it, or add the context again")
    if loose:
        report("mq", f"{path} can be read by other users; run chmod 600 on it")
    return Contexts(read.inUse if read.inUse in read.contexts else None, read.contexts)


def write_contexts(path: str, contexts: Contexts) -> None:
    """Replace the file in one step. Raises OSError, or CliError for a value that is not UTF-8."""
    from twisted_mq.storage.files.replace_file import replace_file

    value = _File(contexts.in_use, {name: dict(kept) for name, kept in contexts.by_name.items()})
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise CliError("a value is not valid UTF-8", "use UTF-8 text") from None
    before = os.umask(NOBODY_ELSE)
    try:
        if os.path.exists(path):
            os.chmod(path, MODE)
        replace_file(path, msgspec.json.format(encoded) + b"\n")
    finally:
        os.umask(before)
