"""How much a test on noisy counts is worth, as a picture: over epsilon before, by table after."""

from dataclasses import replace
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from local_dp.campaign import EPSILON_UNITS_MAX
from proxy.cli.chart_file import MARK, ONE, OTHER, chart_svg
from proxy.collections.robustness import NoiseKind, NoisyTest

N_POINTS: Final = 17
SPAN: Final = 10.0  # times less, and times more epsilon
N_BINS: Final = 60
SHOWN: Final = 0.99  # of the tables: a few far ones would leave no room for the others


def flips_svg(test: NoisyTest) -> bytes:
    """How often noise changes the outcome, by its epsilon; the same test gives the same bytes."""
    most = min(EPSILON_UNITS_MAX, test.epsilon_units * SPAN)
    units = np.geomspace(max(1, test.epsilon_units / SPAN), most, N_POINTS).astype(np.int64)
    tests = [replace(test, epsilon_units=int(one)) for one in units]
    lines = {kind: [one.flip(kind).probability for one in tests] for kind in NoiseKind}

    def draw(axes: Axes) -> None:
        for (kind, line), colour in zip(lines.items(), (ONE, OTHER), strict=True):
            axes.semilogx([one.epsilon for one in tests], line, color=colour, label=kind.value)
        axes.axvline(test.epsilon, color=MARK, linestyle=":")
        axes.set_ylim(0, 1)
        axes.legend(frameon=False)
        axes.set_xlabel("epsilon of each row")
        axes.set_ylabel("the test says otherwise")

    return chart_svg(draw)


def doubt_svg(test: NoisyTest, kind: NoiseKind) -> bytes:
    """The statistics of tables that a release may come from, and where they become critical."""
    found, statistics = test.doubt(kind), test.statistics(kind)
    most = max(float(np.quantile(statistics, SHOWN)), found.critical, found.statistic)

    def draw(axes: Axes) -> None:
        axes.hist(statistics, bins=N_BINS, range=(0, most), color=ONE)
        axes.axvline(found.critical, color=MARK, label="critical")
        axes.axvline(found.statistic, color=OTHER, linestyle=":", label="of the release")
        axes.legend(frameon=False)
        axes.set_yticks([])
        axes.set_xlabel("statistic of the table without noise")

    return chart_svg(draw)
