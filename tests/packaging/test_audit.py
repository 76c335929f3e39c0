"""Queries for vulnerabilities, and the message without a source for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.packaging import audit


class Index(BaseHTTPRequestHandler):
    """An index that answers with its path, as JSON or not."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path[1:].encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def index() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_index_with_vulnerabilities_can_be_asked(index: str) -> None:
    assert audit.why_not(index + '{"vulnerabilities":[]}') is None


@pytest.mark.parametrize(("page", "reason"), [("{}", "tells no vulnerabilities"), ("<html>", "Expecting value")])
def test_other_index_is_told(index: str, page: str, reason: str) -> None:
    assert reason in str(audit.why_not(index + page))


def test_check_goes_on_without_an_index_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "why_not", lambda: "no route")
    monkeypatch.setattr(audit, "audit", lambda: pytest.fail("audited"))
    audit.main()
    assert capsys.readouterr().out == (
        "dependencies not audited, no package index tells their vulnerabilities: no route\n"
    )


def test_what_the_audit_says_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "why_not", lambda: None)
    monkeypatch.setattr(audit, "audit", lambda: 1)
    with pytest.raises(SystemExit, match="1"):
        audit.main()
