"""What was bought up to an earlier day, as it was bought."""

import numpy as np

from cube.axis import CategoryAxis, IntegerAxis
from cube.encoding import fingerprint
from cube.horizon import Horizon
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from planner.measuring.candidates import families
from planner.measuring.ski_rental import Horizons

N_DAYS = 60
AXES = (
    CategoryAxis(name="city", values=("a", "b", "c")),
    IntegerAxis(name="day", low=0, high=N_DAYS - 1),
)
SCHEMA = Schema(table="t", axes=AXES, n_records_max=100, grows="day")
TOTAL = QueryBlock(counting())


def between(start: int, end: int) -> QueryBlock:
    inside = np.zeros(N_DAYS, dtype=np.int64)
    inside[start:end] = 1
    return QueryBlock(counting([Factor(("day",), inside)])).primitive[0]


def test_totals_of_earlier_days_are_past_and_ranges_within_them_are_not() -> None:
    horizons = Horizons(SCHEMA)
    (first,) = horizons.as_bought([between(0, 40)])
    assert (first.is_past, first.block.scope) == (True, ())
    within, newest = horizons.as_bought([between(10, 20), between(40, 42)])
    assert (within.is_past, newest.is_past) == (False, True)
    (now,) = horizons.as_bought([TOTAL])
    assert (now.is_past, now.block, now.schema) == (False, TOTAL, SCHEMA)


def test_every_cell_of_an_earlier_horizon_was_a_wide_purchase() -> None:
    """What is bought of the cut table, written for the whole one, is read as it was."""
    then = Horizon("day", N_DAYS, 30)
    for scope in (("city",), ("day",), ("city", "day")):
        cells = families(scope, then.cut_schema(SCHEMA))[0][0]
        (found,) = Horizons(SCHEMA).as_bought([then.whole(cells)])
        assert fingerprint(found.block) == fingerprint(cells)
        assert found.schema.sizes(scope) == then.cut_schema(SCHEMA).sizes(scope)


def test_a_copy_goes_on_by_itself() -> None:
    horizons = Horizons(SCHEMA)
    horizons.as_bought([between(0, 20)])
    other = horizons.copy()
    other.as_bought([between(0, 50)])
    (found,) = horizons.as_bought([between(0, 30)])
    assert found.schema.by_name["day"].size == 30


def test_a_table_that_does_not_grow_has_no_past() -> None:
    still = Schema(table="t", axes=AXES, n_records_max=100)
    block = QueryBlock(counting(), Partition(("city",), np.arange(3)))
    found = Horizons(still).as_bought([between(0, 40), block])
    assert [one.is_past for one in found] == [False, False]
    assert [one.block.scope for one in found] == [("day",), ("city",)]
