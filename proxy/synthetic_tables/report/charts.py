"""The charts of the report: synthetic counts with the history's intervals, and maps of pairs.

Charts contain no names: the page prints names, and escapes them.
"""

from typing import Final

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from proxy.reporting.charts import FAINT, LIMIT, SPENT, SPENT_AREA, drawing, inline
from proxy.synthetic_tables.report.compare import ComparedTable

N_BARS_MAX: Final = 40  # groups that get a bar each; more are drawn as one outline
# Differences in half-widths, and the opacity of a cell beyond each; 0 where nothing is known.
SHADES: Final = ((2.0, 1.0), (1.0, 0.55), (0.5, 0.2))
MAP_WIDTH: Final = 220.0
MAP_HEIGHTS: Final = (70.0, 260.0)

Cells = NDArray[np.bool_]


def counts(compared: ComparedTable, name: str, label: str) -> Markup:
    """The counts of one column's groups, each with the history's interval where there is one.

    Parameters
    ----------
    compared : ComparedTable
        The counts of one column.
    name : str
        A unique name within the page, of letters, digits and hyphens.
    label : str
        A description of the chart, for screen readers.
    """
    known = compared.known
    low = np.where(known.is_known, known.low, 0.0)
    high = np.where(known.is_known, known.high, 0.0)
    n_groups = compared.synthetic.size
    with drawing(240, 84) as figure:
        axes = figure.add_axes((0.0, 0.02, 1.0, 0.96))
        axes.set_axis_off()
        axes.set_xlim(0, n_groups)
        axes.set_ylim(0, 1.04 * max(compared.synthetic.max(), high.max()) or 1.0)
        axes.axhline(0, color=FAINT, linewidth=1.6)
        if n_groups <= N_BARS_MAX:
            middles = np.arange(n_groups) + 0.5
            axes.bar(
                middles, compared.synthetic, 0.8, color=SPENT_AREA, edgecolor=SPENT, linewidth=0.7
            )
            is_drawn = known.is_known
            axes.vlines(
                middles[is_drawn], low[is_drawn], high[is_drawn], color=LIMIT, linewidth=1.6
            )
            axes.plot(
                middles[is_drawn], known.values[is_drawn], "_", color=LIMIT, markersize=5, mew=1.2
            )
        else:
            edges = np.arange(n_groups + 1)
            axes.stairs(compared.synthetic, edges, fill=True, color=SPENT_AREA, linewidth=0)
            axes.stairs(compared.synthetic, edges, color=SPENT, linewidth=0.9, baseline=None)
            axes.stairs(high, edges, baseline=low, fill=True, color=LIMIT, linewidth=0, alpha=0.45)
        return inline(figure, name, label)


def differences(compared: ComparedTable, name: str, label: str) -> Markup:
    """A map of a pair's cells: the stronger the colour, the further outside the interval.

    Rows of the map are groups of the first column, from the top. Parameters as for `counts`.
    """
    n_rows, n_columns = compared.synthetic.shape
    height = float(np.clip(MAP_WIDTH * n_rows / n_columns, *MAP_HEIGHTS))
    relative, is_known = compared.relative, compared.known.is_known
    with drawing(MAP_WIDTH, height) as figure:
        axes = figure.add_axes((0.004, 0.004, 0.992, 0.992))
        axes.set_xlim(0, n_columns)
        axes.set_ylim(n_rows, 0)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(True)
            side.set_color(FAINT)
        _fill(axes, ~is_known, FAINT, 0.6)
        above = np.inf
        for least, ink in SHADES:
            is_here = (least < np.abs(relative)) & (np.abs(relative) <= above)
            _fill(axes, is_here & (relative > 0), LIMIT, ink)
            _fill(axes, is_here & (relative < 0), SPENT, ink)
            above = least
        return inline(figure, name, label)


def _fill(axes: Axes, cells: Cells, colour: str, ink: float) -> None:
    """Fill some cells: one outline for all of them, so that a page stays small."""
    places = np.argwhere(cells)
    if not places.size:
        return
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
    points = (places[:, np.newaxis, ::-1] + corners).reshape(-1, 2)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places)
    outline = Path(points.astype(np.float64), codes)
    axes.add_patch(PathPatch(outline, facecolor=colour, alpha=ink, linewidth=0))
