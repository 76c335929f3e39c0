"""The parts of the pages that are made from the code."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import construct
import pytest

from docs.generate import FRAGMENTS, write
from docs.generate.commands import mq_help
from docs.generate.contents import sections, with_toctrees
from docs.generate.layouts import Row, declared, modules, pictures, rows
from docs.generate.library import side_by_side
from docs.generate.pictures import Box, draw
from docs.generate.settings import broker, every_key, other_keys, without_effect
from tests.docs.blocks import PAGES, ROOT
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.config.known_keys import known_keys
from twisted_mq.config.options import option_fields
from twisted_mq.namesrv.options import NamesrvOptions
from twisted_mq.protocol.layouts.queue_entry import QUEUE_EXTENSION_UNIT
from twisted_mq.protocol.layouts.record import MESSAGE
from twisted_mq.proxy.options import ProxyServiceOptions

SAID_IN_WORDS = {"BLANK", "INDEX_SLOT"}
HEAD_ROW = re.compile(r"(?<!\S)(\d+|\.\.) +([\d|]+|\.\.) +([a-z]\w+)")
"""Offset, size and name, where a module's docstring has them in a table."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("generated")
    write(made)
    return made


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragment_says_something(folder: Path, name: str) -> None:
    assert len((folder / name).read_text()) > 300


def test_what_has_not_changed_is_not_written_again(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    write(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_every_key_of_the_broker_stands_in_one_of_the_tables() -> None:
    tables = broker(), without_effect()
    missing = [key for key in option_fields(BrokerOptions) if sum(f"| `{key}` |" in table for table in tables) != 1]
    assert missing == []


def test_row_of_a_key() -> None:
    lines = broker().splitlines()
    assert (
        "| `listenPort` | int, 0 to 65535 | `10911` | fixed | port for clients; the fast port is two below |" in lines
    )
    assert "| `storePathRootDir` | string | `~/store` | fixed | directory of the store |" in lines
    assert "### Flushing" in lines


def test_keys_of_other_classes_are_named_once() -> None:
    assert other_keys().count("`enableControllerMode`") == 1
    assert "`listenPort`" not in other_keys()


def test_every_key_that_a_file_may_have_stands_in_one_table_once() -> None:
    keys = [line.split("|")[1].strip(" `") for line in every_key().splitlines()[2:]]
    assert len(keys) == len(set(keys))
    options = (BrokerOptions, NamesrvOptions, ProxyServiceOptions)
    assert set(keys) == {*known_keys(), *(key for one in options for key in option_fields(one))}
    rows = dict(zip(keys, every_key().splitlines()[2:], strict=True))
    assert (
        rows["highSpeedMode"]
        == "| `highSpeedMode` | Apache's BrokerConfig | `false` | no: version 5.3.3 does not read it |  |"
    )
    assert rows["listenPort"].startswith("| `listenPort` | broker, name server | `10911` | yes | port for clients")
    assert "| no: one thread appends: there is no choice of lock |" in rows["osPageCacheBusyTimeOutMills"]


def test_rows_of_a_layout_with_a_tail() -> None:
    assert rows("QUEUE_EXTENSION_UNIT", QUEUE_EXTENSION_UNIT)[-2:] == [
        Row(18, 2, "bit_map_size", "signed"),
        Row(20, None, "filter_bit_map", "`bit_map_size` bytes"),
    ]


def test_rows_of_the_message_are_all_its_fields() -> None:
    shown = rows("MESSAGE", MESSAGE)
    assert [row.name for row in shown] == [subcon.name for subcon in MESSAGE.subcons]
    assert [row.size for row in shown[-6:]] == [4, None, 1, None, 2, None]


@pytest.mark.parametrize(
    ("module", "name", "layout"),
    [
        pytest.param(module, name, layout, id=name)
        for module in modules()
        for name, layout in declared(module)
        if name not in SAID_IN_WORDS
    ],
)
def test_table_at_the_head_of_a_file_is_right(module: ModuleType, name: str, layout: construct.Struct) -> None:
    said = {
        (offset, int(size), field)
        for offset, sizes, field in HEAD_ROW.findall(module.__doc__ or "")
        for size in sizes.replace("..", "0").split("|")
    }
    known = [row for row in rows(name, layout) if row.size is not None]
    assert [
        row for row in known if not {(str(row.offset), row.size, row.name), ("..", row.size, row.name)} & said
    ] == []


def test_pictures_are_drawings() -> None:
    assert {ElementTree.fromstring(text).tag for text in pictures().values()} == {f"{SVG}svg"}


def test_boxes_of_a_picture() -> None:
    drawing = ElementTree.fromstring(draw("X", [Box(0, 4, "a"), Box(4, 8, "b"), Box(12, None, "c")]))
    boxes = [(box.get("x"), box.get("y"), box.get("width")) for box in drawing.iter(f"{SVG}rect")][1:]
    assert boxes == [("56", "24", "352"), ("408", "24", "352"), ("56", "58", "352"), ("56", "92", "704")]
    assert [text.text for text in drawing.iter(f"{SVG}text")][8:] == ["0", "a", "b", "8", "(b)", "12", "c"]


def test_help_of_a_command_below_a_command() -> None:
    assert "### mq store verify\n" in mq_help()


def test_a_section_of_links_becomes_a_toctree() -> None:
    page = "# T\n\n- [x](a/x.md)\n\n## First\n\n- [y](a/y.md): b\n- [z](z.md) and [y](a/y.md)\n\n## None\n\ntext\n"
    assert sections(page) == {"First": ["a/y", "z"], "None": []}
    assert with_toctrees(page) == page + "\n```{toctree}\n:caption: First\n:hidden:\n\na/y\nz\n```\n"


def test_the_landing_page_leads_to_every_page_once() -> None:
    index = ROOT / "docs" / "index.md"
    led = [page for pages in sections(index.read_text()).values() for page in pages]
    below = [
        page.relative_to(index.parent).with_suffix("").as_posix() for page in PAGES if index.parent in page.parents
    ]
    assert sorted(led) == sorted(set(below) - {"index"})


def test_the_faces_stand_side_by_side() -> None:
    sends = next(line for line in side_by_side().splitlines() if line.startswith("| `send(") and "`await send(" in line)
    deferred, awaited, called, does = sends.strip("| ").split(" | ")
    assert "timeout_seconds" in deferred
    assert awaited == called.replace("`send", "`await send")
    assert does.startswith("Send one message")
