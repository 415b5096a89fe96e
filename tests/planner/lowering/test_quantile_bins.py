"""Bins in which a quantile of a wide column is counted, against a division level by level."""

import numpy as np
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.workload import QuantileFormula

N_LEVELS = 10_001  # no multiple of the bins
CITY = CategoryAxis(name="city", values=("a", "b", "c"))
PLACE = IntegerAxis(name="place", low=0, high=5_999)
PRICE = IntegerAxis(name="price", low=-50, high=N_LEVELS - 51, null=True)
SCHEMA = Schema(table="sales", axes=(CITY, PLACE, PRICE), n_records_max=1000)
PLANNER = Planner({"sales": SCHEMA}, {"sales": AccuracyTarget(half_width=10.0, confidence=0.95)})
# By what is grouped, and the number of the group of each level of the key's axis; -1 for none.
GROUPED = {
    "city": ("city", CITY, np.arange(3)),
    "narrow": ("CASE WHEN city = 'b' THEN 1 ELSE 0 END", CITY, np.array([0, 1, 0])),
    "wide": ("FLOOR(place / 1000)", PLACE, np.arange(6_000) // 1000),
}


@pytest.mark.parametrize("name", GROUPED)
def test_each_cell_is_in_the_bin_of_its_price_and_the_group_of_its_key(name: str) -> None:
    key, axis, groups = GROUPED[name]
    sql = f"SELECT {key} AS k, MEDIAN(price) AS m FROM sales GROUP BY 1"  # noqa: S608 - our own text
    (part,) = PLANNER.plan(sql).parts
    (formula,) = [one.formula for one in part.answers if isinstance(one.formula, QuantileFormula)]
    (block,) = next(one.blocks for one in part.aggregates if one.blocks[0].partition is not None)
    partition = block.partition
    assert partition is not None
    assert partition.axes == (axis.name, "price")
    n_bins = len(formula.levels)
    assert 100 < n_bins <= 256
    width = -(-N_LEVELS // 256)
    labels = np.asarray(partition.labels)
    assert labels.shape == (axis.size, N_LEVELS + 1)
    assert (labels[:, N_LEVELS] == -1).all(), "NULL is in no bin"
    counted = np.array(formula.cells)[labels[:, :N_LEVELS]]
    assert np.array_equal(counted, groups[:, None] * n_bins + np.arange(N_LEVELS) // width)
    assert list(formula.levels) == list(range(-50, N_LEVELS - 50, width))
    assert list(formula.upper) == [min(low + width - 1, PRICE.high) for low in formula.levels]
