"""Parts of HTML pages: no external resources, charts are inline SVG, the style is in the head."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import attrs

from twisted_mq.spark.report.report_words import NOTHING

_STYLE = """
:root { color-scheme: light; --ink: #1f2933; --faint: #616e7c; --line: #e4e7eb; --bad: #b42318; --good: #0f7b57; }
* { box-sizing: border-box; }
body { margin: 0; background: #f5f7fa; color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { margin: 0; font-size: 26px; } h2 { margin: 36px 0 10px; font-size: 18px; }
p { margin: 4px 0; } .faint { color: var(--faint); } code { font-size: 13px; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin: 22px 0; }
@media (max-width: 640px) { .tiles { grid-template-columns: repeat(2, 1fr); } }
.tile, .card { background: #fff; border: 1px solid var(--line); border-radius: 10px; }
.tile { padding: 12px 16px; } .tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.25; }
.tile.bad b { color: var(--bad); } .tile.good b { color: var(--good); }
.card { overflow-x: auto; } .picture { padding: 14px; } .picture svg { width: 100%; height: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 14px; text-align: left; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 550; font-size: 13px; white-space: nowrap; } td { overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; } .number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
td:first-child { min-width: 180px; } .plain { white-space: nowrap; }
td.bad { color: var(--bad); font-weight: 600; }
"""


@attrs.frozen
class Field:
    """A table's column: its heading, the style of its cells (`number`, `plain`: one line, `text`), and whether they show
    faults."""

    name: str
    look: str = "number"
    fault: bool = False


def document(title: str, parts: Iterable[str]) -> str:
    """Return a whole page of these elements."""
    body = "\n".join((f"<h1>{escape(title)}</h1>", *parts))
    head = (
        f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(title)}</title>"
        f"<style>{_STYLE}</style>"
    )
    return f"<!doctype html>\n<html lang=en><head>{head}</head>\n<body><main>{body}</main></body></html>\n"


def picture_card(svg: str) -> str:
    """Return an SVG file as an element, without XML declaration and document type."""
    return f"<div class='card picture'>{svg[svg.index('<svg') :]}</div>"


def tiles(found: Iterable[tuple[str, str, str]]) -> str:
    """Return numbers side by side, each with its name, its value, and `bad`, `good` or nothing."""
    made = (f"<div class='tile {state}'><b>{escape(value)}</b>{escape(name)}</div>" for name, value, state in found)
    return f"<div class=tiles>{''.join(made)}</div>"


def table(title: str, fields: Sequence[Field], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """Return a heading, a note and the rows; the word "none" without rows."""
    heading = f"<h2>{escape(title)}</h2>" + (f"<p class=faint>{escape(note)}</p>" if note else "")
    if not rows:
        return f"<h2>{escape(title)}</h2><p class=faint>none</p>"
    head = "".join(f"<th class={field.look}>{escape(field.name)}</th>" for field in fields)
    lines = (f"<tr>{''.join(map(_cell, fields, row))}</tr>" for row in rows)
    return (
        f"{heading}<div class=card><table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(field: Field, value: object) -> str:
    text = escape(str(value))
    bad = " bad" if field.fault and text != NOTHING else ""
    return f"<td class='{field.look}{bad}'>{text}</td>"


def escape(text: str) -> str:
    """Escape text for a page."""
    return html.escape(text)
