"""A plan of a stream as a picture: how exact a count is, by the number of bits."""

import io
from fractions import Fraction
from typing import Final

import numpy as np

from proxy.reporting.svg import INK, LIMIT, SPENT, drawing
from streams.planning import half_width_of

WIDTH, HEIGHT = 420.0, 240.0  # points
N_POINTS: Final = 24
FEWEST_BITS: Final = 16
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def plan_svg(epsilon: Fraction, universe: int, confidence: float, half_width: float) -> bytes:
    """The half-width for numbers of bits up to the universe, and the one that is asked for."""
    fewest = min(FEWEST_BITS, universe)
    bits = np.unique(np.geomspace(fewest, universe, N_POINTS).round().astype(np.int64)).tolist()
    widths = [half_width_of(epsilon, n_bits, confidence, universe) for n_bits in bits]
    buffer = io.BytesIO()
    with drawing(WIDTH, HEIGHT) as figure:
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
        figure.savefig(buffer, format="svg", facecolor="white", metadata=_NO_METADATA)
    return buffer.getvalue()
