"""A plan for a collection as a picture: how the precision grows with the respondents."""

from dataclasses import replace
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from proxy.cli.chart_file import MARK, ONE, chart_svg
from proxy.collections.plan import Plan

N_POINTS: Final = 41
SPAN: Final = 10.0  # times as few, and times as many respondents as planned


def plan_svg(plan: Plan) -> bytes:
    """The picture as an SVG file; the same plan gives the same bytes."""
    least = max(1.0, plan.n_respondents / SPAN)
    numbers = np.unique(np.geomspace(least, plan.n_respondents * SPAN, N_POINTS).astype(np.int64))
    widths = [replace(plan, n_respondents=int(one)).widest for one in numbers]

    def draw(axes: Axes) -> None:
        axes.loglog(numbers, widths, color=ONE)
        axes.plot([plan.n_respondents], [plan.widest], "o", color=MARK)
        axes.annotate(
            f"{plan.n_respondents} respondents: {plan.widest:.3g}",
            (plan.n_respondents, plan.widest),
            xytext=(6, 6),
            textcoords="offset points",
        )
        axes.set_xlabel(f"respondents, each at epsilon {float(plan.campaign.epsilon):.3g}")
        of_what = "any share" if plan.share is None else f"a share of {plan.share:g}"
        axes.set_ylabel(f"half-width of {of_what}, {plan.confidence:g}")

    return chart_svg(draw)
