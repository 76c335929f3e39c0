"""Tables, pictures and help texts that are made from the code when the pages are built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generate import commands, house, layouts, library, places, rights, settings, spark
from tests.support.codes_table import table_here
from twisted_mq.served_codes import markdown

FRAGMENTS: dict[str, Callable[[], str]] = {
    "request-codes.md": lambda: markdown(table_here()),
    "rights.md": rights.rights_matrix,
    "named-places.md": places.named_places,
    "named-in-calls.md": places.named_in_calls,
    "broker-settings.md": settings.broker,
    "namesrv-settings.md": settings.name_server,
    "proxy-settings.md": settings.proxy,
    "settings-without-effect.md": settings.without_effect,
    "other-keys.md": settings.other_keys,
    "every-key.md": settings.every_key,
    "layouts.md": layouts.tables,
    "house.md": house.table_of_floors,
    "mq.md": commands.mq_help,
    "mqadmin.md": commands.mqadmin_help,
    "daemons.md": commands.daemon_help,
    "client.md": library.client,
    "faces.md": library.side_by_side,
    "spark-options.md": spark.options,
    "spark-columns.md": spark.columns,
    "spark-live-options.md": spark.live_options,
    "spark-sink-options.md": spark.sink_options,
    "spark-access-options.md": spark.access_options,
    "spark-frame-options.md": spark.frame_options,
}
"""File in docs/generated -> its text. Pages include them."""


def write(folder: Path) -> None:
    """All fragments and pictures. Files that are the same already stay untouched, so that Sphinx reads them once."""
    folder.mkdir(exist_ok=True)
    texts = {name: make() for name, make in FRAGMENTS.items()} | layouts.pictures() | {"house.svg": house.drawing()}
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
