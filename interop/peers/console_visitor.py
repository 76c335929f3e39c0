"""Visitor of a console without a browser: logs in with the token in the address, sends forms, reads pages."""

from __future__ import annotations

import http.cookiejar
import re
import urllib.error
import urllib.parse
import urllib.request

SECONDS = 60


class Visitor:
    """A session. `look` and `submit` return a page's text without its tags."""

    def __init__(self, address: str) -> None:
        url, _, token = address.partition("#")
        self._root = url.removesuffix("login").rstrip("/")
        jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self._form_key = self._key(self._open("/login"))
        self._form_key = self._key(self._open("/login", {"token": token}))

    def page(self, path: str, **fields: str) -> str:
        """HTML of a page."""
        query = urllib.parse.urlencode(fields)
        return self._open(f"{path}?{query}" if query else path)

    def look(self, path: str, **fields: str) -> str:
        return words(self.page(path, **fields))

    def submit(self, path: str, **fields: str) -> str:
        """Send a form; the page that it leads to."""
        return words(self._open(path, fields))

    def _open(self, path: str, form: dict[str, str] | None = None) -> str:
        data = None if form is None else urllib.parse.urlencode({"form_key": self._form_key, **form}).encode()
        try:
            with self._opener.open(self._root + path, data, timeout=SECONDS) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as refused:
            return refused.read().decode()

    @staticmethod
    def _key(page: str) -> str:
        return re.findall(r'name="form_key" value="([^"]+)"', page)[0]


def words(page: str) -> str:
    """The text of a page, blanks made single."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())
