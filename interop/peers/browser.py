"""Debian's Chromium, without a window, at the pages of a console."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService, Keys
from selenium.webdriver.common.action_chains import ActionChains

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-US")
WAIT_SECONDS = 60.0
MOST_TABS = 120
AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]})
  .then((found) => done(found.violations), (error) => done([{id: String(error), nodes: []}]));
"""
OURS = [sys.executable, "-c", "from twisted_mq.cli.mq import main; main()"]


@contextmanager
def running_console(name_server: str) -> Iterator[str]:
    """Run `mq console` beside a cluster; yield its address with a token for a login."""
    command = [*OURS, "console", "--console-port", "0", "--json", "--namesrv", name_server]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["console"])
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def running_server(store: Path) -> Iterator[str]:
    """Run `mq up` on a store with its console; yield its address for a login."""
    command = [*OURS, "up", "--store", str(store), "--port", "0", "--console-port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield str(json.loads(process.stdout.readline())["console"])
        finally:
            process.terminate()
            process.wait(60)


class Browser:
    """A browser window, and the actions of a user in it."""

    def __init__(self) -> None:
        options = ChromeOptions()
        for flag in FLAGS:
            options.add_argument(flag)
        options.binary_location = shutil.which("chromium") or ""
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
        self._axe = axe_source()
        self.base = ""

    def close(self) -> None:
        self.driver.quit()

    def come_in(self, address: str) -> None:
        """By the address that a console announced."""
        self.base = address.partition("/login")[0]
        self.driver.get(address)
        self.wait(lambda: self.path == "/", "the clusters' page")

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self.base)

    def look(self, path: str, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """A page on a screen of that size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get(self.base + path)

    def script(self, text: str, *arguments: object) -> Any:
        return self.driver.execute_script(text, *arguments)

    @property
    def text(self) -> str:
        """Return the visible text."""
        return str(self.script("return document.body.innerText"))

    def wait(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not self._holds(holds):
            assert time.monotonic() < deadline, f"no {what} within {WAIT_SECONDS:g} s; at {self.path}: {self.text}"
            time.sleep(0.05)

    def _holds(self, holds: Callable[[], object]) -> bool:
        try:
            return bool(holds())
        except StaleElementReferenceException:  # the page is being changed for another
            return False

    # keys

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector: str) -> None:
        """Press the tabulator until the element has the focus, which has to be seen."""
        for _ in range(MOST_TABS):
            self.press(Keys.TAB)
            if self.script("return document.activeElement.matches(arguments[0])", selector):
                outline = self.script("return getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"the focus is not seen on {selector}"
                return
        raise AssertionError(f"no tabulator leads to {selector}")

    # what is wrong with a page

    def complaints(self) -> list[str]:
        """Return the findings of axe, by rule and element, and the errors in Chromium's log."""
        if not self.script("return typeof axe !== 'undefined'"):
            self.script(self._axe)
        found = self.driver.execute_async_script(AXE)
        by_rule = [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"] or [{"html": ""}]]
        return [*by_rule, *self.errors()]

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the screen."""
        return int(self.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def axe_source() -> str:
    """axe-core's script, as the package axe-core-python ships it; its Python is not used."""
    found = importlib.util.find_spec("axe_core_python")
    assert found is not None and found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text()
