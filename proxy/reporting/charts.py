"""Charts as SVG elements of a page: no scripts, no addresses, no ids of other figures.

Colours are names from the page's style sheet, so that a chart is light or dark with the page. Text
stays text. The same figure gives the same bytes, in any process. matplotlib's settings are global
to the process, so one figure is drawn at a time.

Those of the report are what was spent over time, and along each column. Charts contain no names
from a ledger: the page prints names, and escapes them. Numbers become floats only here.
"""

import datetime as dt
import io
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Final

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, DateFormatter
from matplotlib.figure import Figure

from accountant.auditor.costs import ColumnCost
from cube.measurement import UNITS_PER_EPSILON
from proxy.reporting.model import TableReport

# matplotlib's colours, and the names by which the page replaces them. No others are used.
INK: Final = "#010101"
FAINT: Final = "#020202"
SPENT: Final = "#030303"
SPENT_AREA: Final = "#040404"
LIMIT: Final = "#050505"
_STYLE_NAMES: Final = {
    INK: "var(--ink-soft)",
    FAINT: "var(--line)",
    SPENT: "var(--accent)",
    SPENT_AREA: "var(--accent-area)",
    LIMIT: "var(--limit)",
}
_FONT: Final = "DejaVu Sans"  # comes with matplotlib, so that text has the same size everywhere
_SETTINGS: Final = {
    "font.family": [_FONT],
    "font.size": 8.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "tacit",
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "date.epoch": "1970-01-01T00:00:00",
    "timezone": "UTC",
}
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_DRAWING: Final = threading.Lock()


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A new figure of this size in points, with the settings common to all figures."""
    with _DRAWING, mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]  # keys are a literal type
        figure = Figure(figsize=(width / 72, height / 72))
        FigureCanvasSVG(figure)
        yield figure


def inline(figure: Figure, name: str, label: str) -> Markup:
    """A figure as an element for a page.

    Parameters
    ----------
    name : str
        A unique name within the page, of letters, digits and hyphens.
    label : str
        A description of the chart, for screen readers.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata=_NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for clutter in (r"<!--.*?-->", r"<metadata>.*?</metadata>", r"<style.*?</style>"):
        text = re.sub(clutter, "", text, flags=re.DOTALL)
    opening, rest = text.split(">", 1)
    [view_box] = re.findall(r'viewBox="[0-9. ]+"', opening)
    rest = rest.replace("xlink:href", "href")
    rest = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", rest)
    for colour, style_name in _STYLE_NAMES.items():
        rest = rest.replace(colour, style_name)
    rest = rest.replace(f"'{_FONT}'", "var(--font)")
    return Markup('<svg {} role="img" aria-label="{}">').format(Markup(view_box), label) + Markup(  # noqa: S704 - drawn here from numbers; no text of a ledger is in it
        re.sub(r"\n\s*", "\n", rest).strip()
    )


N_POINTS_MAX: Final = 400  # of a line: more would not be visible
N_BARS_MAX: Final = 40  # levels that get a bar each; more are drawn as one outline
FLAT_SHARE: Final = Fraction(1, 10)  # of the budget: a smaller spent share would not be visible
MINUTE: Final = 1 / (24 * 60)  # in matplotlib's days
# The format of a tick on a time axis of at least this many days.
DATE_PATTERNS: Final = ((1500, "%Y"), (120, "%Y-%m"), (4, "%Y-%m-%d"), (0, "%m-%d %H:%M"))

Point = tuple[float, float]


def shows_budget(table: TableReport) -> bool:
    """Whether the budget and what was spent of it are both visible in one chart.

    A budget that renews is no line above the sum of all its windows.
    """
    if table.renewing is not None:
        return False
    largest = max(value for _, value in table.budgets)
    return not table.purchases or table.spent >= FLAT_SHARE * largest


def timeline(table: TableReport, as_of: str, name: str) -> Markup:
    """What was spent since the table was opened, step by step, under its budget."""
    end = max(_days(as_of), _days(table.opened_at) + MINUTE)
    steps = [
        (_days(one.counted_at), one.units_after / UNITS_PER_EPSILON) for one in table.purchases
    ]
    spent = _thinned([(_days(table.opened_at), 0.0), *steps], end)
    budget = [(_days(at), float(value)) for at, value in table.budgets]
    highest = max([spent[-1][1], *(value for _, value in budget if shows_budget(table))])
    with drawing(640, 180) as figure:
        axes = figure.add_axes((0.07, 0.13, 0.92, 0.84))
        axes.set_xlim(spent[0][0], end)
        axes.set_ylim(0, 1.08 * highest or 1.0)
        _frame(axes)
        days, amounts = zip(*spent, (end, spent[-1][1]), strict=True)
        axes.fill_between(days, amounts, step="post", color=SPENT_AREA, linewidth=0)
        axes.step(days, amounts, where="post", color=SPENT, linewidth=1.4)
        if shows_budget(table):
            days, amounts = zip(*budget, (end, budget[-1][1]), strict=True)
            axes.step(days, amounts, where="post", color=LIMIT, linewidth=1.2, dashes=(5, 3))
        _calendar(axes, end - spent[0][0])
        often = "" if table.renewing is None else f" a {table.renewing.window}"
        now = f"now {spent[-1][1]:.6f} of a budget of {budget[-1][1]:g}{often}"
        label = f"Epsilon spent over time, {now}"
        return inline(figure, name, label)


def along_column(cost: ColumnCost, spent: Fraction, name: str, *, is_ordered: bool) -> Markup:
    """The most that a cell with each level has paid, under the table's cost.

    Where the two bounds on it differ, the filled area is the lower and a line the upper bound.
    """
    edges = (*cost.starts, cost.n_levels)
    at_most = [units / UNITS_PER_EPSILON for units in cost.at_most]
    at_least = [units / UNITS_PER_EPSILON for units in cost.at_least]
    with drawing(200, 56) as figure:
        axes = figure.add_axes((0.0, 0.02, 1.0, 0.96))
        axes.set_axis_off()
        axes.set_xlim(0, cost.n_levels)
        axes.set_ylim(0, float(spent) * 1.02 or 1.0)
        axes.axhline(0, color=FAINT, linewidth=1.6)
        axes.axhline(float(spent), color=FAINT, linewidth=0.8, dashes=(2, 3))
        if not is_ordered and cost.n_levels <= N_BARS_MAX:
            lengths = [end - start for start, end in pairwise(edges)]
            tops = [top for top, n in zip(at_least, lengths, strict=True) for _ in range(n)]
            middles = [level + 0.5 for level in range(cost.n_levels)]
            axes.bar(middles, tops, 0.78, color=SPENT_AREA, edgecolor=SPENT, linewidth=0.8)
        else:
            axes.stairs(at_least, edges, fill=True, color=SPENT_AREA, linewidth=0)
            axes.stairs(at_least, edges, color=SPENT, linewidth=1.2, baseline=None)
        if not cost.is_exact:
            axes.stairs(at_most, edges, color=SPENT, linewidth=0.8, baseline=None, linestyle=":")
        label = f"Cost along {cost.n_levels} levels, at most {max(at_most):.6f}"
        return inline(figure, name, label)


def _frame(axes: Axes) -> None:
    axes.yaxis.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, pad=5, labelcolor=INK)
    axes.locator_params(axis="y", nbins=5)


def _calendar(axes: Axes, n_days: float) -> None:
    """Ticks along time, as fine as the time span requires; in digits, without month names."""
    locator = AutoDateLocator(minticks=3, maxticks=7, tz=dt.UTC)  # type: ignore[no-untyped-call]  # matplotlib's
    pattern = next(text for least, text in DATE_PATTERNS if n_days >= least)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(DateFormatter(pattern, tz=dt.UTC))  # type: ignore[no-untyped-call]  # as above


def _days(at: str) -> float:
    """A time in days since 1970, as matplotlib counts them here (charts.py)."""
    return dt.datetime.fromisoformat(at).timestamp() / 86_400


def _thinned(points: Sequence[Point], end: float) -> list[Point]:
    """The first point, and the last of each of many short intervals, to draw few points."""
    first = points[0][0]
    length = (end - first) / N_POINTS_MAX
    last_of = {int((day - first) / length): (day, value) for day, value in points}
    return [points[0], *(point for point in last_of.values() if point != points[0])]
