"""The models that synthetic rows are drawn from, of either method, and as JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.axis import Axis
from proxy.synthetic_tables.decoding import decoded
from synthesis import drawing, model_text, strata_text
from synthesis.model import PairwiseModel
from synthesis.model_text import model_json, model_of
from synthesis.privbayes import drawing as network_drawing
from synthesis.privbayes.network import BayesianNetwork
from synthesis.privbayes.network_text import network_json, network_of
from synthesis.strata import StratifiedModel, draw_stratified_rows
from synthesis.strata_text import strata_json, strata_model_of

Model: TypeAlias = PairwiseModel | StratifiedModel | BayesianNetwork

N_ROWS_AT_ONCE: Final = 2**20  # so that memory does not grow with the rows


def encoded(model: Model) -> dict[str, Any]:
    """A model as JSON values."""
    match model:
        case PairwiseModel():
            return model_json(model)
        case StratifiedModel():
            return strata_json(model)
        case _:
            return network_json(model)


def decoded_model(values: Mapping[str, Any]) -> Model:
    """The model that `encoded` wrote; ValueError, KeyError or TypeError if it is not one."""
    match values["kind"]:
        case model_text.KIND:
            return model_of(dict(values))
        case strata_text.KIND:
            return strata_model_of(dict(values))
        case _:
            return network_of(dict(values))


def n_rows_of(model: Mapping[str, Any]) -> int:
    """The estimate of the number of rows of a model that `encoded` wrote."""
    return max(1, round(float(model["total"])))


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
    n_left = round(model.total) if n_rows is None else n_rows
    for n_parts in range(max(1, -(-n_left // N_ROWS_AT_ONCE)), 0, -1):
        n_drawn = -(-n_left // n_parts)
        n_left -= n_drawn
        yield decoded(axes, _levels(model, rng, n_drawn), rng)


def _levels(model: Model, rng: np.random.Generator, n_rows: int) -> NDArray[np.int32]:
    """Rows drawn from a model, as positions of levels."""
    match model:
        case PairwiseModel():
            return drawing.draw_rows(model, rng, n_rows=n_rows)
        case StratifiedModel():
            return draw_stratified_rows(model, rng, n_rows=n_rows)
        case _:
            return network_drawing.draw_rows(model, rng, n_rows=n_rows)
