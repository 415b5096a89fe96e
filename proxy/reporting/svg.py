"""Figures as SVG elements of a page: no scripts, no addresses, no ids of other figures.

Colours are names from the page's style sheet, so that a chart is light or dark with the page. Text
stays text. The same figure gives the same bytes, in any process.

matplotlib's settings are global to the process, so one figure is drawn at a time.
"""

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

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
    figure : Figure
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
