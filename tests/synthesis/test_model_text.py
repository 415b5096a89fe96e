"""Models as JSON text: what is read draws what was written, also where an earlier version wrote."""

import json
from typing import Any

import numpy as np
import pytest

from synthesis.drawing import draw_rows
from synthesis.model import PairwiseModel, fit_model, model_json, model_of
from synthesis.sketch import Sketch
from synthesis.tables import Column
from tests.support.made_up_rows import MadeUpRows

COLUMNS = (Column("a", 40), Column("b", 3, 2), Column("c", 5))


def fitted() -> PairwiseModel:
    """A model with buckets, and with a pair that is counted over fewer groups than buckets."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 40, 4_000) * rng.integers(0, 2, 4_000)
    rows = MadeUpRows(COLUMNS, np.stack([a, a % 3, (a + rng.integers(0, 2, 4_000)) % 5], axis=1))
    tables = rows.nearly_exact(("a",), ("b",), ("c",), ("a", "b"), ("a", "c"))
    return fit_model(Sketch.of(COLUMNS, tables))


def written(model: PairwiseModel) -> dict[str, Any]:
    text: dict[str, Any] = json.loads(json.dumps(model_json(model)))
    return text


def test_a_model_that_is_read_draws_what_the_written_one_draws() -> None:
    model = fitted()
    read = model_of(written(model))
    drawn = [draw_rows(one, np.random.default_rng(2)) for one in (model, read)]
    assert np.array_equal(drawn[0], drawn[1])
    assert {pair: table.noise for pair, table in read.pairs.items()} == {
        pair: table.noise for pair, table in model.pairs.items()
    }


def test_pairs_of_earlier_versions_count_every_bucket() -> None:
    """They had neither groups nor noise."""
    model = fitted()
    earlier = written(model)
    counts = np.outer(model.shares["b"], model.shares["c"])
    earlier["pairs"] = [{"columns": ["b", "c"], "counts": counts.tolist()}]
    table = model_of(earlier).pairs["b", "c"]
    assert [groups.is_plain for groups in table.groups] == [True, True]
    assert table.noise == 0
    assert draw_rows(model_of(earlier), np.random.default_rng(3), n_rows=50).shape == (50, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "another"},
        {"total": -1.0},
        {"pairs": [{"columns": ["a", "b"], "counts": [[1.0]]}]},
    ],
)
def test_what_is_no_such_model_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        model_of(written(fitted()) | change)
