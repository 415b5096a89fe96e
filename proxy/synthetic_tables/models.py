"""The models that synthetic rows are drawn from, of either method, and as JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

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
    rng = np.random.default_rng(seed)
    match model:
        case PairwiseModel():
            rows = drawing.draw_rows(model, rng, n_rows=n_rows)
        case StratifiedModel():
            rows = draw_stratified_rows(model, rng, n_rows=n_rows)
        case _:
            rows = network_drawing.draw_rows(model, rng, n_rows=n_rows)
    return decoded(axes, rows, rng)
