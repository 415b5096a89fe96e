"""A stratified model as plain JSON values, and back; see `synthesis.model_text`."""

from typing import Any, Final

from synthesis.model_text import model_json, model_of
from synthesis.strata import StratifiedModel
from synthesis.tables import Column

KIND: Final = "strata"


def strata_json(model: StratifiedModel) -> dict[str, Any]:
    """A model as JSON values."""
    return {
        "kind": KIND,
        "total": model.total,
        "columns": [
            {"name": one.name, "size": one.size, "n_ordered": one.n_ordered}
            for one in model.columns
        ],
        "target": list(model.target),
        "models": [
            {"levels": list(levels), "model": model_json(one)}
            for levels, one in model.models.items()
        ],
    }


def strata_model_of(encoded: dict[str, Any]) -> StratifiedModel:
    """The model that `strata_json` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such a model.
    """
    if encoded["kind"] != KIND:
        raise ValueError(f"a model of kind {encoded['kind']!r}")
    return StratifiedModel(
        columns=tuple(
            Column(one["name"], one["size"], one["n_ordered"]) for one in encoded["columns"]
        ),
        target=tuple(encoded["target"]),
        models={tuple(one["levels"]): model_of(one["model"]) for one in encoded["models"]},
    )
