"""Measures from source to counts: clamped and rounded exactly as brute force in fractions does."""

import csv
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.axis import IntegerAxis, MeasureAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from proxy.config.columns import LevelFiles, as_written, read_axis
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.sources.problems import Problems
from tests.support.examples import examples
from tests.support.fakes import NoNoise
from tests.support.groupings import each

DECIMALS = st.decimals(-20, 20, places=2, allow_nan=False).map(Fraction)
STEPS = st.sampled_from([Fraction(step) for step in ("1", "2", "5", "0.5", "0.1", "0.25", "1.3")])


@st.composite
def measures(draw: st.DrawFn) -> MeasureAxis:
    """A measure with decimal bounds, with or without NULL."""
    low, step = draw(DECIMALS), draw(STEPS)
    high = low + step * draw(st.integers(1, 40))
    return MeasureAxis(name="pay", low=low, high=high, step=step, null=draw(st.booleans()))


@st.composite
def filled(draw: st.DrawFn) -> tuple[MeasureAxis, list[float | None]]:
    """A measure and doubles for it, many of them ties or next to a tie."""
    axis = draw(measures())
    ties = [float(axis.low + axis.step * Fraction(2 * k + 1, 2)) for k in range(-2, axis.size + 1)]
    doubles = st.one_of(
        st.sampled_from(ties),
        st.sampled_from([math.nextafter(tie, side) for tie in ties for side in (-99, 99)]),
        st.floats(-60, 60),
        st.sampled_from([-0.0, 1e300, -1e300, 2.0**53, math.nan, math.inf, -math.inf]),
    )
    return axis, draw(st.lists(st.one_of(st.none(), doubles), max_size=25))


def nearest(axis: MeasureAxis, value: Fraction) -> int:
    """The position of the level nearest to an exact value after clamping; ties go up."""
    low, high, step = Fraction(axis.low), Fraction(axis.high), Fraction(axis.step)
    clamped = min(max(value, low), high)
    return math.floor((clamped - low) / step + Fraction(1, 2))


def brute_force(axis: MeasureAxis, values: Sequence[Any]) -> Counter[int]:
    counted: Counter[int] = Counter()
    for value in values:
        if value is None:
            if axis.null_position is not None:
                counted[axis.null_position] += 1
        elif math.isfinite(value):
            # A double is read as the shortest decimal that it is written as.
            exact = as_written(value) if isinstance(value, float) else Fraction(value)
            counted[nearest(axis, exact)] += 1
    return counted


def counted(axis: MeasureAxis, path: Path) -> Counter[int]:
    schema = Schema(table="t", axes=(axis,), n_records_max=1000)
    found = DuckDbSource(schema, SourceLocation(path=path)).measure(each(schema, axis.name))
    return Counter(dict(zip(found.levels[0].tolist(), found.counts.tolist(), strict=True)))


def write_csv(path: Path, values: Sequence[Any]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["pay", "beside"])
        writer.writerows(["" if value is None else str(value), "x"] for value in values)
    return path


def write_parquet(path: Path, values: Sequence[Any], kind: pa.DataType) -> Path:
    pq.write_table(pa.table({"pay": pa.array(values, kind)}), path)
    return path


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=filled())
def test_doubles_are_clamped_and_rounded_as_their_decimals_are(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[MeasureAxis, list[float | None]]
) -> None:
    axis, values = case
    folder = tmp_path_factory.mktemp("doubles")
    expected = brute_force(axis, values)
    assert counted(axis, write_parquet(folder / "a.parquet", values, pa.float64())) == expected
    assert counted(axis, write_csv(folder / "a.csv", values)) == expected


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    axis=measures(),
    values=st.lists(
        st.one_of(
            st.none(), st.integers(-60, 60), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])
        ),
        max_size=25,
    ),
)
def test_whole_numbers_are_clamped_and_rounded_exactly(
    tmp_path_factory: pytest.TempPathFactory, axis: MeasureAxis, values: list[int | None]
) -> None:
    folder = tmp_path_factory.mktemp("integers")
    expected = brute_force(axis, values)
    assert counted(axis, write_parquet(folder / "a.parquet", values, pa.int64())) == expected
    assert counted(axis, write_csv(folder / "a.csv", values)) == expected


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.uint64(), pa.float32(), pa.decimal128(22, 2), pa.decimal128(38, 3)],
    ids=str,
)
def test_any_number_type_serves_a_measure(tmp_path: Path, kind: pa.DataType) -> None:
    axis = MeasureAxis(name="pay", low=2, high=8, step=2)
    values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100]
    pq.write_table(
        pa.table({"pay": pa.array(values, pa.int64()).cast(kind)}), tmp_path / "a.parquet"
    )
    assert counted(axis, tmp_path / "a.parquet") == {0: 3, 1: 2, 2: 2, 3: 4}


def test_decimals_on_a_tie_go_up_where_their_doubles_lie_below_it(tmp_path: Path) -> None:
    """0.15 / 0.1 is 1.4999999999999998 in doubles, and one and a half as written."""
    axis = MeasureAxis(name="pay", low=0, high=1, step=Fraction(1, 10))
    written = ["0.15", "0.35", "0.55", "0.85", "0.149", "0.95", "-0.05", "1.05"]
    expected = Counter({2: 1, 4: 1, 6: 1, 9: 1, 1: 1, 10: 2, 0: 1})
    assert counted(axis, write_csv(tmp_path / "a.csv", written)) == expected
    decimals = [Decimal(text) for text in written]
    kind = pa.decimal128(10, 3)
    assert counted(axis, write_parquet(tmp_path / "a.parquet", decimals, kind)) == expected
    assert brute_force(axis, decimals) == expected


def test_a_number_just_below_a_half_is_not_rounded_up(tmp_path: Path) -> None:
    """Adding one half to it gives 1.0 in doubles; half of all such roundings are written so."""
    below = math.nextafter(0.5, 0)
    assert math.floor(below + 0.5) == 1
    axis = MeasureAxis(name="pay", low=0, high=1, step=1)
    assert counted(axis, write_parquet(tmp_path / "a.parquet", [below], pa.float64())) == {0: 1}


def test_the_sum_over_levels_is_the_sum_that_duckdb_computes(tmp_path: Path) -> None:
    rng = np.random.default_rng(20_240_607)
    values = rng.integers(-500, 60_000, 5000).tolist()
    path = write_parquet(tmp_path / "a.parquet", values, pa.int64())
    axis = MeasureAxis(name="pay", low=0, high=50_000, step=1)
    schema = Schema(table="t", axes=(axis,), n_records_max=10_000)
    found = DuckDbSource(schema, SourceLocation(path=path)).measure(each(schema, "pay"))
    total = int(np.array(axis.levels)[found.levels[0]] @ found.counts)
    with duckdb.connect() as connection:
        ((expected,),) = connection.execute(
            f"SELECT sum(greatest(0, least(50000, pay))) FROM '{path}'"  # noqa: S608 - a path of this test
        ).fetchall()
    assert total == expected


@pytest.mark.parametrize("text", ["ten", "1,5", "0x10", "2020-01-01", "--1", "1 2"])
def test_text_that_is_no_number_is_refused_by_column_and_never_quoted(
    tmp_path: Path, text: str
) -> None:
    axis = MeasureAxis(name="pay", low=0, high=9, step=1)
    path = write_csv(tmp_path / "a.csv", [text])
    with pytest.raises(ConfigurationInvalid) as caught:
        counted(axis, path)
    said = caught.value.explain()
    assert "tables.t.columns.pay: the source holds a value that is not of type BIGINT" in said
    assert text not in said.replace(str(tmp_path), "")


@pytest.mark.parametrize("array", [pa.array(["1"]), pa.array([True])], ids=["text", "boolean"])
def test_a_typed_column_that_holds_no_numbers_is_no_measure(
    tmp_path: Path, array: pa.Array
) -> None:
    pq.write_table(pa.table({"pay": array}), tmp_path / "a.parquet")
    with pytest.raises(ConfigurationInvalid, match="does not fit the declared kind"):
        counted(MeasureAxis(name="pay", low=0, high=9, step=1), tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_what_is_not_finite_is_left_out_even_where_a_parquet_file_hides_it(
    tmp_path: Path, kind: pa.DataType
) -> None:
    axis = MeasureAxis(name="pay", low=0, high=9, step=1, null=True)
    values = [1.0, math.nan, math.inf, -math.inf, None]
    assert counted(axis, write_parquet(tmp_path / "a.parquet", values, kind)) == {1: 1, 10: 1}


def test_measures_and_other_columns_are_counted_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,pay,tip\n1,10.4,3\n1,11,-2\n2,99,\n3,,1\n")
    schema = Schema(
        table="t",
        axes=(
            IntegerAxis(name="age", low=0, high=9),
            MeasureAxis(name="pay", low=0, high=50, step=5),
            MeasureAxis(name="tip", low=0, high=2, step=Fraction(1, 2), null=True),
        ),
        n_records_max=10,
    )
    source = DuckDbSource(schema, SourceLocation(path=tmp_path / "a.csv"))
    found = source.measure(each(schema, "age", "pay", "tip"))
    cells = zip(*(levels.tolist() for levels in found.levels), strict=True)
    assert sorted(cells) == [(1, 2, 0), (1, 2, 4), (2, 10, 5)]
    assert source.measure(each(schema)).counts.tolist() == [3]


def test_the_gate_sells_a_sum_about_the_middle_for_half_the_range(tmp_path: Path) -> None:
    """What a measure costs is read off its levels, as what any query costs is off its cells."""
    axis = MeasureAxis(name="pay", low=0, high=50, step=5)
    schema = Schema(table="t", axes=(axis,), n_records_max=10)
    path = write_csv(tmp_path / "a.csv", ["12", "13", "70", "-4", "25"])  # 10, 15, 50, 0, 25
    unit = Fraction(axis.step, 2)
    from_middle = [int((Fraction(level) - axis.middle) / unit) for level in axis.regular]
    assert from_middle == list(range(-10, 11, 2))
    block = QueryBlock(counting([Factor(("pay",), np.array(from_middle, dtype=np.int64))]))
    weight = Weight.at_least(Fraction(1, 100))
    with open_ledger(tmp_path / "a.ledger") as ledger:
        source = DuckDbSource(schema, SourceLocation(path=path))
        gate = open_table(ledger, schema, Fraction(1), source, NoNoise())
        (found,) = gate.measure(
            [PlannedMeasurement(block, weight)], Payer("anybody"), epsilon_cap=None
        )
        spent = gate.budget().spent
    n_records = 5
    assert found.values[0] * float(unit) + n_records * float(axis.middle) == 100.0
    assert spent == weight.exact * 10


def declared(values: dict[str, Any]) -> MeasureAxis | str:
    """The measure that a column of the configuration declares, or what is wrong with it."""
    problems = Problems(Path("x"))
    axis = read_axis(
        "pay", {"kind": "measure", **values}, ("columns", "pay"), problems, LevelFiles(Path())
    )
    try:
        problems.raise_if_any()
    except ConfigurationInvalid as refusal:
        return str(refusal).split("\n  ", 1)[1]
    assert isinstance(axis, MeasureAxis)
    return axis


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"low": 0, "high": 99}, MeasureAxis(name="pay", low=0, high=99, step=1)),
        ({"low": 0.0, "high": 9.0}, MeasureAxis(name="pay", low=0, high=9, step=1)),
        (
            {"low": 0, "high": 1, "step": 0.1, "null": True},
            MeasureAxis(name="pay", low=0, high=1, step=Fraction(1, 10), null=True),
        ),
        (
            {"low": -0.3, "high": 1e-1, "step": 0.1},
            MeasureAxis(
                name="pay", low=Fraction(-3, 10), high=Fraction(1, 10), step=Fraction(1, 10)
            ),
        ),
    ],
)
def test_a_declared_measure_is_exactly_what_is_written(
    values: dict[str, Any], expected: MeasureAxis
) -> None:
    assert declared(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"low": 0, "high": 1.5}, "columns.pay: step is missing; it defaults to 1 only if"),
        ({"low": 0, "high": 9, "step": 0}, "columns.pay: step 0 is not positive"),
        ({"low": 0, "high": 9, "step": -1}, "columns.pay: step -1 is not positive"),
        ({"low": 0, "high": 1, "step": 0.3}, "columns.pay: step 3/10 does not divide high - low"),
        ({"low": 9, "high": 9}, "columns.pay: low 9 is not below high 9"),
        (
            {"low": 0, "high": 2**20},
            "columns.pay: the range has more than 1048576 levels; a wider step gives fewer",
        ),
        ({"low": 0, "high": 1e300, "step": 1e-300}, "columns.pay: the range has more than"),
        ({"low": 0, "high": 9, "other": 3}, "columns.pay.other: is not a known key"),
        ({"low": 0, "high": True}, "columns.pay.high"),
        ({"low": 0, "high": "9"}, "columns.pay.high"),
        ({"low": 0, "high": math.inf}, "columns.pay.high"),
        ({"low": 0}, "columns.pay.high: is missing"),
    ],
)
def test_a_measure_that_makes_no_sense_is_a_problem(values: dict[str, Any], expected: str) -> None:
    said = declared(values)
    assert isinstance(said, str)
    assert said.startswith(expected)
