"""A pairwise model as plain JSON values, and back, so that rows can be drawn from it again.

Released numbers and public names only.
"""

from typing import Any, Final

import numpy as np

from synthesis.buckets import Buckets
from synthesis.model import PairwiseModel
from synthesis.tables import Column

KIND: Final = "pairwise"


def model_json(model: PairwiseModel) -> dict[str, Any]:
    """A model as JSON values."""
    return {
        "kind": KIND,
        "total": model.total,
        "columns": [
            {
                "name": column.name,
                "size": column.size,
                "n_ordered": column.n_ordered,
                "buckets": model.buckets[column.name].labels.tolist(),
                "shares": model.shares[column.name].tolist(),
                "parts": model.parts[column.name].tolist(),
            }
            for column in model.columns
        ],
        "pairs": [
            {"columns": list(pair), "counts": table.tolist()} for pair, table in model.pairs.items()
        ],
    }


def model_of(encoded: dict[str, Any]) -> PairwiseModel:
    """The model that `model_json` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such a model.
    """
    if encoded["kind"] != KIND:
        raise ValueError(f"a model of kind {encoded['kind']!r}")
    columns = encoded["columns"]
    return PairwiseModel(
        columns=tuple(Column(one["name"], one["size"], one["n_ordered"]) for one in columns),
        buckets={one["name"]: Buckets(np.array(one["buckets"], dtype=np.int64)) for one in columns},
        total=encoded["total"],
        shares={one["name"]: np.array(one["shares"], dtype=np.float64) for one in columns},
        pairs={
            (pair["columns"][0], pair["columns"][1]): np.array(pair["counts"], dtype=np.float64)
            for pair in encoded["pairs"]
        },
        parts={one["name"]: np.array(one["parts"], dtype=np.float64) for one in columns},
    )
