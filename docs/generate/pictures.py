"""Pictures of byte layouts: rows of eight bytes, a box for each field, dashed where the size differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

import attrs

BYTES_A_ROW = 8
BYTE_WIDTH, ROW_HEIGHT = 88, 34
MARGIN_LEFT, MARGIN_TOP = 56, 24
WIDTH = MARGIN_LEFT + BYTES_A_ROW * BYTE_WIDTH + 8
LETTER_WIDTH, FONT_SIZE = 6.6, 11
"""The width of a monospaced letter, in points."""


@attrs.frozen
class Box:
    """A field: `offset` and `size` in bytes, None where they are not the same in all records."""

    offset: int | None
    size: int | None
    name: str


@attrs.frozen
class _Piece:
    """The part of a field in one row; `column` and `span` count bytes."""

    row: int
    column: int
    span: int
    label: str
    dashed: bool
    offset: int | None


def draw(title: str, boxes: Sequence[Box]) -> str:
    """Draw an SVG, dark on white, so that it can be read on any page."""
    pieces = list(_pieces(boxes))
    height = MARGIN_TOP + (max(piece.row for piece in pieces) + 1) * ROW_HEIGHT + 8
    body = [_ruler(column) for column in range(BYTES_A_ROW)]
    body += [line for piece in pieces for line in _drawn(piece)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="{FONT_SIZE}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def _pieces(boxes: Sequence[Box]) -> Iterator[_Piece]:
    """Fields of known place as they lie; from the first other one on, each field begins a row."""
    next_row = 0
    for box in boxes:
        if box.offset is None or box.size is None:
            span = min(box.size or BYTES_A_ROW, BYTES_A_ROW)
            yield _Piece(next_row, 0, span, box.name, box.size is None, box.offset)
            next_row += 1
            continue
        for piece in _known(box, box.offset, box.size):
            yield piece
            next_row = piece.row + 1


def _known(box: Box, offset: int, size: int) -> Iterator[_Piece]:
    """The pieces of a field, one a row; the widest of them has the name, the others have it in brackets."""
    end = offset + size
    starts = [offset, *range((offset // BYTES_A_ROW + 1) * BYTES_A_ROW, end, BYTES_A_ROW)]
    spans = [min(end, (start // BYTES_A_ROW + 1) * BYTES_A_ROW) - start for start in starts]
    named = spans.index(max(spans))
    for number, (start, span) in enumerate(zip(starts, spans, strict=True)):
        row, column = divmod(start, BYTES_A_ROW)
        yield _Piece(row, column, span, box.name if number == named else f"({box.name})", False, start)


def _ruler(column: int) -> str:
    x = MARGIN_LEFT + column * BYTE_WIDTH + BYTE_WIDTH / 2
    return f'<text x="{x:g}" y="{MARGIN_TOP - 8}" text-anchor="middle" fill="#666">{column}</text>'


def _drawn(piece: _Piece) -> Iterator[str]:
    x, y = MARGIN_LEFT + piece.column * BYTE_WIDTH, MARGIN_TOP + piece.row * ROW_HEIGHT
    width, middle = piece.span * BYTE_WIDTH, y + ROW_HEIGHT / 2 + FONT_SIZE / 3
    dash = ' stroke-dasharray="5 4"' if piece.dashed else ""
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{ROW_HEIGHT}" fill="#eef3fa" stroke="#456"{dash}/>'
    if piece.column == 0:
        place = ".." if piece.offset is None else str(piece.offset)
        yield f'<text x="{MARGIN_LEFT - 8}" y="{middle:g}" text-anchor="end" fill="#666">{place}</text>'
    squeezed = len(piece.label) * LETTER_WIDTH > width - 8
    fit = f' textLength="{width - 8}" lengthAdjust="spacingAndGlyphs"' if squeezed else ""
    yield f'<text x="{x + width / 2:g}" y="{middle:g}" text-anchor="middle"{fit}>{escape(piece.label)}</text>'
