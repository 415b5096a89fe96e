"""The way back from values to levels: every level that can be drawn, and nothing else."""

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest

from cube.axis import IntegerAxis, MeasureAxis, NumericAxis
from proxy.synthetic_tables.models import arrow_type, decoded, levels_of
from tests.support.synthesis import AXES

SUMMED = MeasureAxis(name="hours", low=-1, high=1, step=1)
EVERY_KIND = (*AXES, SUMMED)


def test_values_lead_back_to_the_levels_that_they_were_drawn_from() -> None:
    rng = np.random.default_rng(3)
    drawn = np.stack([rng.integers(0, axis.size, 2000) for axis in EVERY_KIND], axis=1)
    assert all(len(set(drawn[:, place])) == axis.size for place, axis in enumerate(EVERY_KIND))
    found = levels_of(EVERY_KIND, decoded(EVERY_KIND, drawn.astype(np.int32), rng))
    assert list(found) == [axis.name for axis in EVERY_KIND]
    assert np.array_equal(np.stack(list(found.values()), axis=1), drawn)


def test_the_last_bin_holds_its_upper_edge() -> None:
    axis = NumericAxis(name="pay", edges=(0.0, 10.0, 100.0))
    table = pa.table({"pay": [0.0, 10.0, 99.0, 100.0]})
    assert levels_of([axis], table)["pay"].tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "value"),
    [("age", 19), ("age", None), ("job", "pilot"), ("pay", 1000.5), ("since", dt.date(2021, 1, 1))],
)
def test_a_value_without_a_level_is_refused_and_not_repeated(name: str, value: object) -> None:
    axis = next(axis for axis in AXES if axis.name == name)
    table = pa.table({name: pa.array([value], type=arrow_type(axis))})
    with pytest.raises(ValueError, match=name) as caught:
        levels_of([axis], table)
    assert value is None or not re.search(re.escape(str(value)), str(caught.value))


def test_a_column_without_null_has_no_level_for_it() -> None:
    axis = NumericAxis(name="pay", edges=(0.0, 10.0))
    with pytest.raises(ValueError, match="pay"):
        levels_of([axis], pa.table({"pay": pa.array([None], type=pa.float64())}))


def test_other_columns_are_not_looked_at() -> None:
    axis = IntegerAxis(name="age", low=1, high=3)
    table = pa.table({"name": ["x", "y"], "age": [3, 1]})
    assert levels_of([axis], table)["age"].tolist() == [2, 0]
