"""A chart as a file of its own: one size, colours, and axes whose numbers are written out.

Not a figure of a page: those take the colours of the page (`proxy.reporting.svg`).
"""

import io
from collections.abc import Callable
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from proxy.reporting.svg import drawing

WIDTH, HEIGHT = 420.0, 260.0  # points
PLACE: Final = (0.16, 0.18, 0.8, 0.74)
ONE, OTHER, MARK = "#1f5f99", "#b3541e", "#a01030"
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def chart_svg(draw: Callable[[Axes], object]) -> bytes:
    """The SVG file of what `draw` puts on a pair of axes; the same chart gives the same bytes."""
    buffer = io.BytesIO()
    with drawing(WIDTH, HEIGHT) as figure:
        axes = figure.add_axes(PLACE)
        draw(axes)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.set_minor_formatter(NullFormatter())
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_NO_METADATA)
    return buffer.getvalue()
