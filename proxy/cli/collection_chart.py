"""A plan for a collection as a picture: how the precision grows with the respondents."""

import io
from typing import Final

import numpy as np

from proxy.collections.plan import Plan
from proxy.reporting.svg import INK, LIMIT, SPENT, drawing

WIDTH, HEIGHT = 420.0, 260.0  # points
N_POINTS: Final = 41
SPAN: Final = 10.0  # times as few, and times as many respondents as planned
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def plan_svg(plan: Plan) -> bytes:
    """The picture as an SVG file; the same plan gives the same bytes."""
    least = max(1.0, plan.n_respondents / SPAN)
    numbers = np.unique(np.geomspace(least, plan.n_respondents * SPAN, N_POINTS).astype(np.int64))
    widths = [Plan(plan.campaign, int(one), plan.confidence).widest for one in numbers]
    buffer = io.BytesIO()
    with drawing(WIDTH, HEIGHT) as figure:
        axes = figure.add_axes((0.16, 0.18, 0.8, 0.74))
        axes.loglog(numbers, widths, color=SPENT)
        axes.plot([plan.n_respondents], [plan.widest], "o", color=LIMIT)
        axes.annotate(
            f"{plan.n_respondents} respondents: {plan.widest:.3g}",
            (plan.n_respondents, plan.widest),
            xytext=(6, 6),
            textcoords="offset points",
            color=INK,
        )
        axes.set_xlabel(f"respondents, each at epsilon {float(plan.campaign.epsilon):.3g}")
        axes.set_ylabel(f"half-width of a share, {plan.confidence:g}")
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_NO_METADATA)
    return buffer.getvalue()
