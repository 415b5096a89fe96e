"""The scratchpad holds levels, evaluates what is allowed, and cannot do anything else."""

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from cube.axis import IntegerAxis
from cube.pace import Deadline, paced
from cube.refusals import Refused, TooLarge, TooSlow, UnsupportedSql
from cube.schema import Schema
from planner.cache import BoundedCache
from planner.domain import scratchpad as module
from planner.domain.allowed import ALLOWED
from planner.domain.domain import N_NEIGHBOURS, Probed, collapsed, probes_for
from planner.domain.evaluated import dyadic
from planner.domain.scratchpad import Scratchpad
from planner.sql.exact_numbers import constant_value, exact_number
from planner.sql.query_tree import parse
from planner.sql.statements import Query
from tests.planner.people import RECORDS, SCHEMA, block_of, planner


def scalar(sql: str) -> exp.Expr:
    tree: exp.Expr = parse(Query(f"SELECT {sql}")).tree.selects[0]
    return tree


@pytest.fixture(scope="module")
def scratchpad() -> Scratchpad:
    return Scratchpad({"people": SCHEMA})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO 'escaped.csv'",
        "ATTACH 'escaped.db' AS escaped",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET GLOBAL memory_limit = '64GB'",
        "RESET lock_configuration",
    ],
)
def test_its_database_is_locked_down(scratchpad: Scratchpad, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        scratchpad._database.cursor().execute(sql)
    assert not Path("escaped.csv").exists()


def test_it_checks_the_list_itself(scratchpad: Scratchpad) -> None:
    with pytest.raises(UnsupportedSql, match="not a supported function"):
        scratchpad.evaluate(scalar("age > RANDOM()"), table="people")


def test_nothing_that_reads_a_clock_or_chance_is_on_the_list() -> None:
    for name in (
        "Rand",
        "CurrentDate",
        "CurrentTimestamp",
        "Uuid",
        "Anonymous",
        "Select",
        "Lambda",
    ):
        assert getattr(exp, name) not in ALLOWED


def test_only_levels_are_in_the_database(scratchpad: Scratchpad) -> None:
    scratchpad.evaluate(scalar("age + score"), table="people")
    tables = scratchpad._database.cursor().execute("SHOW TABLES").fetchall()
    assert all(name.startswith("levels_") for (name,) in tables)
    sizes = {axis.size for axis in SCHEMA.axes}
    for (name,) in tables:
        counted = scratchpad._database.cursor().execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608 - a name the scratchpad made up
        assert counted is not None
        assert counted[0] in sizes


def test_values_are_in_the_order_of_the_levels(scratchpad: Scratchpad) -> None:
    result = scratchpad.evaluate(scalar("score * 100 + age"), table="people")
    assert result.axes == ("age", "score")
    expected = np.add.outer(np.arange(20), 100 * np.arange(-3, 4))
    assert np.array_equal(result.values[:20], expected)
    assert result.null[20].all()
    assert not result.null[:20].any()


def cubes() -> Schema:
    axes = tuple(IntegerAxis(name=name, low=0, high=159) for name in "abc")
    return Schema(table="cubes", axes=axes, n_records_max=1)


def test_a_runaway_expression_is_not_begun() -> None:
    part = "LENGTH(UPPER(a::text || b::text) || LOWER(b::text || c::text))"
    with pytest.raises(TooLarge, match="steps on the public levels"):
        Scratchpad({"cubes": cubes()}).evaluate(scalar(" + ".join([part] * 50)), table="cubes")


def test_what_takes_longer_than_was_thought_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of the work is measured, not proved: a watch is kept for what passes it."""
    monkeypatch.setattr(module, "SECONDS_MAX", 0.01)
    monkeypatch.setattr("planner.domain.allowance.N_STEPS_MAX", 2**60)
    monkeypatch.setattr(module, "N_CHARACTERS_MAX", 2**60)
    part = "LENGTH(UPPER(a::text || b::text) || LOWER(b::text || c::text))"
    pad = Scratchpad({"cubes": cubes()})
    with pytest.raises(TooLarge, match="takes too much time"):
        pad.evaluate(scalar(" + ".join([part] * 50)), table="cubes")
    monkeypatch.setattr(module, "SECONDS_MAX", 5.0)
    with paced(Deadline(0.02)), pytest.raises(TooSlow):
        pad.evaluate(scalar(" + ".join([part] * 49)), table="cubes")


def test_a_failed_evaluation_leaves_it_usable(scratchpad: Scratchpad) -> None:
    with pytest.raises(UnsupportedSql, match="cannot be evaluated on every level"):
        scratchpad.evaluate(scalar("CAST(sex AS INT)"), table="people")
    assert scratchpad.evaluate(scalar("age"), table="people").values.size == 21


@given(st.lists(st.floats(-(2.0**30), 2.0**30, allow_subnormal=False), min_size=1, max_size=20))
def test_doubles_become_whole_multiples_of_one_unit(values: list[float]) -> None:
    whole, unit = dyadic(np.array(values))
    largest = max(abs(value) for value in values)
    for multiple, value in zip(whole.tolist(), values, strict=True):
        assert abs(multiple) <= 2**40
        assert abs(multiple * unit - Fraction(value)) <= Fraction(largest) / 2**25


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=20), st.integers(-30, 30))
def test_doubles_that_fit_are_exact(multiples: list[int], exponent: int) -> None:
    values = [float(multiple) * 2.0**exponent for multiple in multiples]
    whole, unit = dyadic(np.array(values))
    assert [value * unit for value in whole.tolist()] == [Fraction(value) for value in values]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=0, max_value=10**9))
def test_a_written_number_is_read_exactly(number: object) -> None:
    assert exact_number(str(number)) == Fraction(str(number))


@pytest.mark.parametrize("text", ["1e61", "1e-61", "9" * 61, "1e9999999999999999999"])
def test_a_number_beyond_the_limits_is_refused_at_once(text: str) -> None:
    with pytest.raises(TooLarge):
        exact_number(text)


def test_constant_arithmetic_is_exact() -> None:
    assert constant_value(scalar("-(0.1 + 2 * 3) / 4")) == Fraction(-61, 40)
    assert constant_value(scalar("age + 1")) is None


def test_decimals_are_summed_exactly() -> None:
    workload = planner().plan(
        "SELECT SUM(CASE WHEN age = 1 THEN 0.1 WHEN age = 2 THEN 0.30 END) FROM people"
    )
    (term,) = block_of(workload).query.terms
    assert [term.scale * int(value) for value in term.factors[0].values[:4]] == [
        *(0, Fraction(1, 10), Fraction(3, 10), 0)
    ]


BOUNDS = st.floats(-5, 60).map(lambda value: round(value, 6) + 0.0)
OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])


@given(OPERATORS, st.sampled_from([0.0, 10.0, 20.5, 50.0, -1.0, 51.0]) | BOUNDS)
def test_a_comparison_of_bins_is_refused_exactly_if_it_cuts_one(
    operator: str, bound: float
) -> None:
    probe_values = [bound, float(np.nextafter(bound, -100)), float(np.nextafter(bound, 100))]
    edges = (0.0, 10.0, 20.5, 50.0)
    truth: list[set[bool]] = [set(), set(), set()]
    incomes = [record["income"] for record in RECORDS]
    inside = [income for income in incomes if isinstance(income, float) and income >= 0]
    for value in [*probe_values, *edges, *np.nextafter(edges, 0).tolist(), *inside]:
        if 0.0 <= value <= 50.0:
            place = min(int(np.searchsorted(edges, value, side="right")), 3) - 1
            truth[place].add(_holds(float(value), operator, bound))
    cut = any(len(outcomes) > 1 for outcomes in truth)
    sql = f"SELECT COUNT(*) FROM people WHERE income {operator} {bound!r}"  # noqa: S608 - SQL is the test input
    try:
        query = block_of(BINNED.plan(sql)).query
    except Refused as refusal:
        assert "splits its bin" in refusal.message  # noqa: PT017 - a refusal is right exactly then
        assert cut
        return
    assert not cut
    bins = [0, 0, 0]
    for term in query.terms:
        values = term.factors[0].values[:3] if term.factors else np.ones(3, dtype=np.int64)
        bins = [total + int(term.scale * int(v)) for total, v in zip(bins, values, strict=True)]
    assert bins == [int(outcomes == {True}) for outcomes in truth]


BINNED = planner()


def _holds(value: float, operator: str, bound: float) -> bool:
    return {
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
        "=": value == bound,
        "<>": value != bound,
    }[operator]


def test_the_check_of_bins_has_teeth() -> None:
    probed = probes_for(scalar("income > 15"), SCHEMA, lambda _: None)["income"]
    assert isinstance(probed, Probed)
    assert len(probed.values) >= 2 * 3 + 1 + 2 * N_NEIGHBOURS
    truth = np.array([int(value is not None and value > 15) for value in probed.values])
    with pytest.raises(UnsupportedSql, match=r"splits its bin \[10\.0, 20\.5\)"):
        collapsed(truth, ("income",), {"income": probed})


def test_a_cache_forgets_the_oldest_when_full() -> None:
    cache: BoundedCache[str, int] = BoundedCache(n_entries_max=2, n_bytes_max=100)
    cache.put("a", 1, n_bytes=40)
    cache.put("b", 2, n_bytes=40)
    assert cache.get("a") == 1
    cache.put("c", 3, n_bytes=40)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    cache.put("d", 4, n_bytes=90)
    assert (cache.get("a"), cache.get("c"), cache.get("d")) == (None, None, 4)
    cache.put("e", 5, n_bytes=1000)
    assert cache.get("e") is None
    assert len(cache) == 0
    cache.put("f", 6, n_bytes=90)
    assert (cache.take("f"), cache.take("f")) == (6, None)
    cache.put("g", 7, n_bytes=100)
    assert cache.get("g") == 7
