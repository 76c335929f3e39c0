"""Makes the messages of `mq send` from its options and its input."""

from __future__ import annotations

import base64
import binascii
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs
import click
import msgspec

from twisted_mq.admin.anew import own_properties
from twisted_mq.cli.errors import CliError

if TYPE_CHECKING:
    from twisted_mq.client import Message

_UNITS = {"ms": 1, "s": 1000, "": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d|)\Z", re.ASCII)


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A duration, in ms."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = _DURATION.match(str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration; use 30s, 500ms, 5m, 2h or 1d", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@attrs.frozen
class SendOptions:
    """The common values of all messages of a run. `later` are arguments of a Message that say when it is delivered."""

    topic: str
    tags: str | None = None
    keys: str | None = None
    properties: Mapping[str, str] = attrs.field(factory=dict)
    count: int = 1
    later: Mapping[str, int] = attrs.field(factory=dict)


class _Written(msgspec.Struct):
    """A message as a line of JSON; bodies that are not text are in Base64."""

    body: str = ""
    bodyBase64: str | None = None
    tags: str | None = None
    keys: str | list[str] | None = None
    properties: dict[str, str] = {}
    flag: int = 0


def read_properties(texts: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE texts as a mapping. Raises click.UsageError."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.UsageError(f"--property takes NAME=VALUE, got {name!r}.")
    return {name: value for name, _, value in pairs}


def messages(options: SendOptions, body: str | None, file: BinaryIO | None, form: str | None) -> Iterator[Message]:
    """Yield the messages to send, read on demand. Raises click.UsageError if the options disagree."""
    if body is not None and (file is not None or form is not None):
        raise click.UsageError("BODY cannot be combined with --file, --lines or --json-lines.")
    if body is None and file is None and sys.stdin.isatty():
        raise click.UsageError("Nothing to send: give BODY or --file, or pipe lines in.")
    stream = sys.stdin.buffer if file is None else file
    if body is not None:
        bodies = iter([os.fsencode(body)])
    elif form == "json":
        return _repeated(_json_messages(options, stream), options.count)
    else:
        bodies = iter([stream.read()]) if form is None and file is not None else lines_of(stream)
    return _repeated((make_message(options, one) for one in bodies), options.count)


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines without their ends; empty ones are left out."""
    for line in stream:
        stripped = line.rstrip(b"\r\n")
        if stripped:
            yield stripped


def make_message(options: SendOptions, body: bytes) -> Message:
    """Return a message of these options alone."""
    from twisted_mq.client.core.message import Message

    keys = (options.keys or "").split() or None
    later: dict[str, Any] = dict(options.later)
    return Message(options.topic, body, options.tags, keys, properties=options.properties, **later)


def _json_messages(options: SendOptions, stream: BinaryIO) -> Iterator[Message]:
    """Yield messages from the output of `mq consume --json` and `mq dlq export`; a line's own tags and keys override the
    options'.
    """
    for number, line in enumerate(lines_of(stream), 1):
        try:
            written = msgspec.json.decode(line, type=_Written)
            body = (
                written.body.encode()
                if written.bodyBase64 is None
                else base64.b64decode(written.bodyBase64, validate=True)
            )
        except (msgspec.DecodeError, UnicodeError, binascii.Error) as error:
            raise CliError(
                f"message {number} is not valid: {error}", 'write {"body":"...","tags":"...","keys":["..."]}'
            ) from None
        yield _json_message(options, written, body)


def _json_message(options: SendOptions, written: _Written, body: bytes) -> Message:
    own = own_properties(written.properties)
    keys = written.keys if isinstance(written.keys, str | None) else " ".join(written.keys)
    its_own = attrs.evolve(
        options,
        tags=written.tags or own.get("TAGS") or options.tags,
        keys=keys or own.get("KEYS") or options.keys,
        properties={**options.properties, **own},
    )
    message = make_message(its_own, body)
    message.flag = written.flag
    return message


def _repeated(found: Iterator[Message], count: int) -> Iterator[Message]:
    return (message for message in found for _ in range(count))
