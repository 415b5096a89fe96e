"""The models that synthetic rows are drawn from, of either method, and as JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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


def encoded(model: Model) -> dict[str, Any]:
    """A model as JSON values."""
    return model_json(model) if isinstance(model, PairwiseModel) else network_json(model)


def decoded_model(values: Mapping[str, Any]) -> Model:
    """The model that `encoded` wrote; ValueError, KeyError or TypeError if it is not one."""
    return model_of(dict(values)) if values["kind"] == PAIRWISE else network_of(dict(values))


def n_rows_of(model: Mapping[str, Any]) -> int:
    """The estimate of the number of rows of a model that `encoded` wrote."""
    return max(1, round(float(model["total"])))


def drawn(model: Model, axes: Sequence[Axis], *, n_rows: int | None, seed: int) -> pa.Table:
    """Rows drawn from a model, as values: the same for the same seed."""
    rng = np.random.default_rng(seed)
    draw = drawing if isinstance(model, PairwiseModel) else network_drawing
    rows = draw.draw_rows(model, rng, n_rows=n_rows)
    return decoded(axes, rows, rng)
