"""The models that synthetic rows are drawn from, of either method, and as JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from cube.axis import Axis
from proxy.synthetic_tables.decoding import decoded
from synthesis import drawing
from synthesis.model import PairwiseModel
from synthesis.model_text import KIND as PAIRWISE
from synthesis.model_text import model_json, model_of
from synthesis.privbayes import drawing as network_drawing
from synthesis.privbayes.network import BayesianNetwork
from synthesis.privbayes.network_text import network_json, network_of

Model: TypeAlias = PairwiseModel | BayesianNetwork

N_ROWS_AT_ONCE: Final = 2**20  # so that memory does not grow with the rows


def encoded(model: Model) -> dict[str, Any]:
    """A model as JSON values."""
    return model_json(model) if isinstance(model, PairwiseModel) else network_json(model)


def decoded_model(values: Mapping[str, Any]) -> Model:
    """The model that `encoded` wrote; ValueError, KeyError or TypeError if it is not one."""
    return model_of(dict(values)) if values["kind"] == PAIRWISE else network_of(dict(values))


def drawn(model: Model, axes: Sequence[Axis], *, n_rows: int | None, seed: int) -> pa.Table:
    """Rows drawn from a model, as values: the same for the same seed."""
    return pa.concat_tables(drawn_parts(model, axes, n_rows=n_rows, seed=seed))


def drawn_parts(
    model: Model, axes: Sequence[Axis], *, n_rows: int | None, seed: int
) -> Iterator[pa.Table]:
    """The same rows, a part at a time.

    Notes
    -----
    More than `N_ROWS_AT_ONCE` rows are drawn in parts of nearly equal size. Every part is a table
    of the model by itself: its counts are those of the model up to rounding to whole rows.
    """
    rng = np.random.default_rng(seed)
    draw = drawing if isinstance(model, PairwiseModel) else network_drawing
    n_left = round(model.total) if n_rows is None else n_rows
    for n_parts in range(max(1, -(-n_left // N_ROWS_AT_ONCE)), 0, -1):
        n_drawn = -(-n_left // n_parts)
        n_left -= n_drawn
        yield decoded(axes, draw.draw_rows(model, rng, n_rows=n_drawn), rng)
