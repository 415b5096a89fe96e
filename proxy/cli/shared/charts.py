"""What commands draw, each as an SVG file of its own: plans, tests on noisy counts, networks.

Not figures of a page: those take the colours of the page (`proxy.reporting.charts`). Charts have
one size, colours, and axes whose numbers are written out:

- a plan for a collection: how the precision grows with the respondents;
- how much a test on noisy counts is worth: over epsilon before, by table after;
- a plan of a stream: how exact a count is, by the number of bits.

A learned network is boxes in layers, parents above their children. An arc has an arrowhead if the
tables tell its direction; the wider it is, the more speaks for it.
"""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from local_dp.campaign import EPSILON_UNITS_MAX
from proxy.collections.plan import NoiseKind, NoisyTest, Plan
from proxy.reporting.charts import INK, LIMIT, SPENT, drawing
from streams.planning import half_width_of
from synthesis.networks.learned import LearnedNetwork

WIDTH, HEIGHT = 420.0, 260.0  # points
PLACE: Final = (0.16, 0.18, 0.8, 0.74)
ONE, OTHER, MARK = "#1f5f99", "#b3541e", "#a01030"
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def chart_svg(draw: Callable[[Axes], object]) -> bytes:
    """An SVG file of the chart that `draw` makes on the axes; equal charts give equal bytes."""
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


STREAM_WIDTH, STREAM_HEIGHT = 420.0, 240.0  # points
N_BIT_POINTS: Final = 24
FEWEST_BITS: Final = 16
_NO_METADATA_OF_STREAMS: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def stream_svg(epsilon: Fraction, universe: int, confidence: float, half_width: float) -> bytes:
    """The half-width for numbers of bits up to the universe, and the one that is asked for."""
    fewest = min(FEWEST_BITS, universe)
    bits = np.unique(np.geomspace(fewest, universe, N_BIT_POINTS).round().astype(np.int64)).tolist()
    widths = [half_width_of(epsilon, n_bits, confidence, universe) for n_bits in bits]
    buffer = io.BytesIO()
    with drawing(STREAM_WIDTH, STREAM_HEIGHT) as figure:
        axes = figure.add_axes((0.16, 0.17, 0.8, 0.76))
        axes.loglog(bits, widths, color=SPENT, marker="o", markersize=2.5, linewidth=1.2)
        axes.axhline(half_width, color=LIMIT, linewidth=0.8, linestyle="--")
        axes.annotate(
            f"asked for: {half_width:g}",
            (bits[0], half_width),
            xytext=(2, 3),
            textcoords="offset points",
            color=INK,
        )
        axes.set_xlabel("users with a bit")
        axes.set_ylabel(f"half-width in users, at {confidence:g}")
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_NO_METADATA_OF_STREAMS)
    return buffer.getvalue()


Places: TypeAlias = dict[str, tuple[float, float]]

POINTS_ACROSS: Final = 110.0  # for each column of the widest layer
POINTS_DOWN: Final = 80.0  # for each layer
SVG_DPI: Final = 72  # of every SVG file
HEAD: Final = 12.0  # points
BEND: Final = 0.08  # of the length of an arc, for each layer
N_SORTINGS: Final = 8  # of the layers; after these, places hardly change
_NO_METADATA_OF_NETWORKS: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def network_svg(network: LearnedNetwork) -> bytes:
    """The picture as an SVG file; the same network gives the same bytes."""
    places = layered(network)
    n_layers = 1 + max(int(-down) for _, down in places.values())
    width = 1 + max(across for across, _ in places.values())
    buffer = io.BytesIO()
    with drawing(POINTS_ACROSS * max(width, 2.0), POINTS_DOWN * n_layers) as figure:
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(-0.5, max(width, 2.0) - 0.5)
        axes.set_ylim(-n_layers + 0.5, 0.5)
        axes.set_axis_off()
        boxes = _boxes(axes, places)
        figure.set_dpi(SVG_DPI)
        figure.draw_without_rendering()  # boxes have their size from here on: arcs end at them
        _draw_arcs(axes, network, places, boxes)
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_NO_METADATA_OF_NETWORKS)
    return buffer.getvalue()


def layered(network: LearnedNetwork) -> Places:
    """Where each column stands: across from 0, and down from 0 to minus the number of layers.

    A column is one layer below the lowest of its parents. Within layers, columns are sorted by the
    mean place of the columns that they are joined to [1]_.

    References
    ----------
    .. [1] K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
       structures", IEEE Transactions on Systems, Man, and Cybernetics 11, 1981.
    """
    dag = network.dag
    depth: dict[str, int] = {}
    for name in dag.order():
        depth[name] = 1 + max((depth[parent] for parent in dag.parents(name)), default=-1)
    layers = [
        [name for name in dag.columns if depth[name] == level]
        for level in range(1 + max(depth.values()))
    ]
    widest = max(map(len, layers))
    joined = {name: [other for arc in dag.arcs if name in arc for other in arc] for name in depth}
    across: dict[str, float] = {}
    for _ in range(N_SORTINGS):
        for layer in layers:
            for place, name in enumerate(layer):
                across[name] = place + (widest - len(layer)) / 2
        for layer in layers:
            layer.sort(
                key=lambda name: (
                    sum(across[one] for one in (name, *joined[name])) / (1 + len(joined[name]))
                )
            )
    return {name: (across[name], -float(depth[name])) for name in dag.columns}


def _boxes(axes: Axes, places: Places) -> dict[str, Text]:
    return {
        name: axes.text(
            *place,
            name,
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": INK},
            zorder=2,
        )
        for name, place in places.items()
    }


def _draw_arcs(axes: Axes, network: LearnedNetwork, places: Places, boxes: dict[str, Text]) -> None:
    for arc in network.arcs:
        n_layers = places[arc.parent][1] - places[arc.child][1]
        axes.annotate(
            "",
            xy=places[arc.child],
            xytext=places[arc.parent],
            arrowprops={
                "arrowstyle": "-|>" if arc.is_directed else "-",
                "linewidth": 0.7 + 0.5 * math.log10(1 + max(arc.support, 0.0)),
                "color": INK,
                "mutation_scale": HEAD,
                # Bent, the more the farther, since an arc over several layers would hide others.
                "connectionstyle": f"arc3,rad={BEND * n_layers}",
                "patchA": boxes[arc.parent].get_bbox_patch(),
                "patchB": boxes[arc.child].get_bbox_patch(),
            },
            zorder=1,
        )


N_RESPONDENT_POINTS: Final = 41
RESPONDENT_SPAN: Final = 10.0  # times as few, and times as many respondents as planned


def collection_svg(plan: Plan) -> bytes:
    """The picture as an SVG file; the same plan gives the same bytes."""
    least = max(1.0, plan.n_respondents / RESPONDENT_SPAN)
    numbers = np.unique(
        np.geomspace(least, plan.n_respondents * RESPONDENT_SPAN, N_RESPONDENT_POINTS).astype(
            np.int64
        )
    )
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


N_EPSILON_POINTS: Final = 17
EPSILON_SPAN: Final = 10.0  # times less, and times more epsilon
N_BINS: Final = 60
SHOWN: Final = 0.99  # of the tables: a few far ones would leave no room for the others


def flips_svg(test: NoisyTest) -> bytes:
    """How often noise changes the outcome, by its epsilon; the same test gives the same bytes."""
    most = min(EPSILON_UNITS_MAX, test.epsilon_units * EPSILON_SPAN)
    units = np.geomspace(max(1, test.epsilon_units / EPSILON_SPAN), most, N_EPSILON_POINTS).astype(
        np.int64
    )
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
