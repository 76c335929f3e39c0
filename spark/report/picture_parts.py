"""Parts of charts: the style, axes without frames, bars of counts."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from twisted_mq.spark.report.report_words import count_text

NAME_LENGTH = 30
INK, FAINT, GRID = "#1f2933", "#616e7c", "#e4e7eb"
BLUE, TEAL = "#2f6fde", "#12937e"


def styled() -> AbstractContextManager[None]:
    """Set the style while charts are drawn and written."""
    return matplotlib.rc_context(
        {
            "font.family": "sans-serif",
            "font.size": 9.5,
            "text.color": INK,
            "axes.labelcolor": FAINT,
            "axes.edgecolor": GRID,
            "axes.titlelocation": "left",
            "axes.titlesize": 11.5,
            "axes.titleweight": "bold",
            "xtick.color": FAINT,
            "ytick.color": INK,
            "text.parse_math": False,
            "svg.fonttype": "none",
        }
    )


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """Return the chart as "png" or "svg"."""
    target = io.BytesIO()
    with styled():
        figure.savefig(target, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)
    return target.getvalue()


def bare(axes: Axes) -> None:
    """Remove the frame except the line below, and the ticks."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)


def label_bars(axes: Axes, labels: list[str], values: list[float], texts: list[str]) -> None:
    """Set the labels before and after horizontal bars, from top to bottom."""
    axes.set_yticks(range(len(labels)), [shortened(label) for label in labels])
    axes.invert_yaxis()
    axes.set_xlim(0, max(values, default=1) * 1.18 or 1)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    bare(axes)
    for row, text in enumerate(texts):
        place = (values[row], row)
        axes.annotate(text, place, xytext=(6, 0), textcoords="offset points", va="center", color=FAINT)


def count_axis(axes: Axes) -> None:
    """Set an axis of whole numbers upwards, with grid lines."""
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(int(value))))
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    bare(axes)


def say_none(axes: Axes) -> None:
    """Draw the text "no messages" instead of bars."""
    axes.text(0.5, 0.5, "no messages", ha="center", va="center", color=FAINT, transform=axes.transAxes)
    axes.set_axis_off()


def shortened(name: str) -> str:
    """Return a name, without its middle if it is long."""
    if len(name) <= NAME_LENGTH:
        return name
    half = (NAME_LENGTH - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
