"""Recorded answers of Apache's programs, compared with both Apache's programs and this project's.

`make record-apache` writes the files again: it sets MQ_RECORD_APACHE to the date and runs only tests against Apache's servers.
Without it these tests show whether the recordings are still correct.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs

from interop.peers.toolchain import VERSION

DATE_OF_RECORDING = "MQ_RECORD_APACHE"
"""The environment variable with the date, set when the files are written again."""
COMMAND = "make record-apache"
FOLDER = Path(__file__).parent / "captures" / "answers"


class NotRecordedError(Exception):
    """Raised for a question that the file has no answer to."""


@attrs.define
class Recording:
    """A file of answers by question, with the version, command and date that they come from."""

    path: Path
    date: str | None = attrs.field(factory=lambda: os.environ.get(DATE_OF_RECORDING))
    _answers: dict[str, Any] | None = None

    @classmethod
    def named(cls, name: str) -> Recording:
        return cls(FOLDER / f"{name}.json")

    def apaches(self, question: str, answer: Any, kind: str) -> Any:
        """The recorded answer. While recording, `answer` is written down first if `kind`, the server's, is "apache".

        Raises NotRecordedError; nothing is ever compared with an answer of ours.
        """
        answers = self._read()
        if self.date is not None and kind == "apache":
            answers[question] = answer
            self._write(answers)
        if question not in answers:
            raise NotRecordedError(f"{self.path.name} has no answer to {question!r}: run `{COMMAND}`")
        return answers[question]

    def questions(self) -> set[str]:
        return set(self._read())

    def _read(self) -> dict[str, Any]:
        if self._answers is None:
            self._answers = {} if self.date is not None else dict(json.loads(self.path.read_text())["answers"])
        return self._answers

    def _write(self, answers: dict[str, Any]) -> None:
        origin = {"program": f"Apache RocketMQ {VERSION}", "command": COMMAND, "date": self.date}
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps({"origin": origin, "answers": answers}, indent=1, ensure_ascii=False) + "\n")
