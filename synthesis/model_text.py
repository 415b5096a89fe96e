"""A pairwise model as plain JSON values, and back, so that rows can be drawn from it again.

Released numbers and public names only.
"""

from typing import Any, Final

import numpy as np

from synthesis.buckets import Buckets
from synthesis.model import PairTable, PairwiseModel
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
            {
                "columns": list(pair),
                "groups": [groups.labels.tolist() for groups in table.groups],
                "counts": table.counts.tolist(),
                "noise": table.noise,
            }
            for pair, table in model.pairs.items()
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
    buckets = {one["name"]: Buckets(np.array(one["buckets"], dtype=np.int64)) for one in columns}
    return PairwiseModel(
        columns=tuple(Column(one["name"], one["size"], one["n_ordered"]) for one in columns),
        buckets=buckets,
        total=encoded["total"],
        shares={one["name"]: np.array(one["shares"], dtype=np.float64) for one in columns},
        pairs={
            (one["columns"][0], one["columns"][1]): _pair_of(one, buckets)
            for one in encoded["pairs"]
        },
        parts={one["name"]: np.array(one["parts"], dtype=np.float64) for one in columns},
    )


def _pair_of(encoded: dict[str, Any], buckets: dict[str, Buckets]) -> PairTable:
    """A pair's table; models of earlier versions count every bucket, and say nothing of noise."""
    counts = np.array(encoded["counts"], dtype=np.float64)
    labels = encoded.get("groups") or [range(buckets[n].n_buckets) for n in encoded["columns"]]
    first, second = (Buckets(np.array(one, dtype=np.int64)) for one in labels)
    return PairTable((first, second), counts, float(encoded.get("noise", 0.0)))
