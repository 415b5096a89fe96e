"""A learned network as a picture: boxes in layers, parents above their children.

An arc has an arrowhead if the tables tell its direction; the wider it is, the more speaks for it.
"""

import io
import math
from typing import Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.text import Text

from proxy.reporting.svg import INK, drawing
from synthesis.networks.learned import LearnedNetwork

Places: TypeAlias = dict[str, tuple[float, float]]

POINTS_ACROSS: Final = 110.0  # for each column of the widest layer
POINTS_DOWN: Final = 80.0  # for each layer
SVG_DPI: Final = 72  # of every SVG file
HEAD: Final = 12.0  # points
BEND: Final = 0.08  # of the length of an arc, for each layer
N_SORTINGS: Final = 8  # of the layers; after these, places hardly change
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


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
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_NO_METADATA)
    return buffer.getvalue()


def layered(network: LearnedNetwork) -> Places:
    """Where each column stands: across from 0, and down from 0 to minus the number of layers.

    A column is one layer below the lowest of its parents. Within layers, columns are sorted by the
    mean place of those that they are joined to [1]_.

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
