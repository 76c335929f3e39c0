"""The charts of findings, one below the other."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from twisted_mq.spark.findings.findings import Bars, words
from twisted_mq.spark.report.picture_parts import BLUE, TEAL, count_axis, label_bars, say_none, styled

_TIMES_INCHES = 3.0
_TIMES_NAMED = 8


def draw(pictures: tuple[Bars, ...]) -> Figure:
    """Draw all charts; there must be at least one."""
    heights = [_TIMES_INCHES if one.of_times else max(0.3 * len(one.labels), 1.0) + 0.6 for one in pictures]
    with styled():
        figure = Figure(figsize=(11, sum(heights)), layout="constrained", facecolor="white")
        places = figure.subplots(len(pictures), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, picture in zip(places, pictures, strict=True):
            axes.set_title(picture.title)
            if not picture.values:
                say_none(axes)
            elif picture.of_times:
                _draw_times(axes, picture)
            else:
                _draw_names(axes, picture)
    return figure


def _draw_names(axes: Axes, picture: Bars) -> None:
    axes.barh(range(len(picture.values)), picture.values, color=BLUE, height=0.66)
    texts = [words(picture.kind, int(value)) for value in picture.values]
    label_bars(axes, list(picture.labels), list(picture.values), texts)


def _draw_times(axes: Axes, picture: Bars) -> None:
    axes.bar(range(len(picture.values)), picture.values, color=TEAL, width=0.9)
    named = range(0, len(picture.labels), max(1, len(picture.labels) // _TIMES_NAMED))
    axes.set_xticks(list(named), [picture.labels[place] for place in named], rotation=20, ha="right")
    count_axis(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words(picture.kind, int(value))))
