"""Green, amber or red: of tables made through a real gate, good ones and ones spoilt by hand."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.ledger.limits import Payer
from cube.encoding import declare
from cube.measurement import Weight
from cube.query import Partition, Scope
from proxy.reporting.declared import DeclaredColumn, DeclaredTable
from proxy.synthetic_tables.make import make
from proxy.synthetic_tables.models import levels_of
from proxy.synthetic_tables.report import residuals
from proxy.synthetic_tables.report.compare import compare
from proxy.synthetic_tables.report.make import judged
from proxy.synthetic_tables.report.page import overview_of
from proxy.synthetic_tables.report.residuals import Standing
from proxy.synthetic_tables.report.verdict import PairDistance, Purchases, Tone, Verdict
from proxy.tables.private_table import ServedTable
from tests.proxy.synthetic_tables.report.test_make import REQUEST, record_of
from tests.proxy.synthetic_tables.report.test_page import RECORD, columns_of, verdict_of
from tests.support.synthesis import AXES, SCHEMA, served_staff

Levels = dict[str, NDArray[np.int64]]
ANN = Payer("ann")
NAMES = tuple(sorted(axis.name for axis in AXES))
NOTHING_BOUGHT = Purchases((), (), is_of_table=True)


@pytest.fixture
def surely(monkeypatch: pytest.MonkeyPatch) -> None:
    """What noise alone puts outside is next to nothing; by default it is once in 1,000 reports."""
    monkeypatch.setattr(residuals, "ODDS", 1e-9)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with served_staff(tmp_path, Fraction(1000)) as table:
        yield table


def columns() -> dict[str, DeclaredColumn]:
    declared = DeclaredTable.parse(declare(SCHEMA, version="1"))
    return {column.name: column for column in declared.columns}


def drawn(
    table: ServedTable, *left_out: tuple[str, str], weight: float = 0.15
) -> tuple[Levels, Verdict]:
    """Rows from all columns and all pairs but some, each with noise of seven rows; the verdict."""
    for scope in [*((name,) for name in NAMES), *combinations(NAMES, 2)]:
        shape = SCHEMA.sizes(scope)
        cells = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
        if scope not in left_out:
            added = Weight.at_least(weight)
            table.buy_tables({Partition(scope, cells): added}, ANN, epsilon_cap=None)
    made = make(table, replace(REQUEST, epsilon=Fraction(0)), ANN)
    levels = levels_of(AXES, made.rows)
    return levels, verdict_on(table, levels)


def verdict_on(table: ServedTable, levels: Levels) -> Verdict:
    made = make(table, replace(REQUEST, epsilon=Fraction(0)), ANN)
    comparison = compare(levels, [], total=None, confidence=0.95)
    return judged(table, record_of(made), levels, comparison)


@pytest.mark.usefixtures("surely")
def test_a_table_that_agrees_with_all_of_its_pairs_is_good(table: ServedTable) -> None:
    _, verdict = drawn(table)
    assert [one.standing for one in verdict.checked] == [Standing.INSIDE] * 15
    assert not verdict.not_measured
    assert verdict.tone is Tone.GOOD
    assert verdict.expected is not None
    assert verdict.expected < 0.05
    assert overview_of(verdict, columns()).sentences == ()


@pytest.mark.usefixtures("surely")
def test_agreeing_with_large_noise_is_not_good(table: ServedTable) -> None:
    _, verdict = drawn(table, weight=0.05)
    assert not verdict.outside
    assert verdict.tone is Tone.FAIR
    assert "noise is large" in overview_of(verdict, columns()).headline


@pytest.mark.usefixtures("surely")
def test_a_pair_that_was_not_measured_is_named(table: ServedTable) -> None:
    _, verdict = drawn(table, ("job", "pay"))
    assert verdict.tone is Tone.FAIR
    assert not verdict.outside
    assert [one.scope for one in verdict.open_pairs] == [("job", "pay")]
    [said] = overview_of(verdict, columns()).sentences
    assert said.startswith("1 of 10 pairs of columns were not measured")


def test_a_column_whose_counts_were_moved_is_named(table: ServedTable) -> None:
    levels, _ = drawn(table)
    age = levels["age"]
    verdict = verdict_on(table, levels | {"age": np.where(age == 3, 4, age)})
    assert verdict.tone is Tone.BAD
    assert verdict.worst_columns == ["age"]
    overview = overview_of(verdict, columns())
    assert overview.headline == "It contradicts what was measured of age."
    assert "age" in overview.lines[0].name
    moved = np.count_nonzero(age == 3)
    assert overview.lines[0].rows.split()[0].isdigit()
    # The line is of the column or of a pair with it, whichever noise made the larger one.
    (alone,) = (one for one in verdict.contradicted if one.scope == ("age",))
    assert abs(abs(alone.worst.rows) - moved) < 200


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_column_whose_rows_were_shuffled_is_named(table: ServedTable, share: float) -> None:
    """All of them, or, as if its fit had been stopped early, half."""
    levels, _ = drawn(table)
    rng = np.random.default_rng(1)
    senior = levels["senior"].copy()
    some = rng.choice(senior.size, int(share * senior.size), replace=False)
    senior[some] = rng.permutation(senior[some])
    verdict = verdict_on(table, levels | {"senior": senior})
    assert verdict.tone is Tone.BAD
    assert [one.scope for one in verdict.contradicted] == [("age", "senior")]
    assert "senior" in overview_of(verdict, columns()).sentences[0]


def test_the_column_that_explains_all_that_is_off_is_named_alone(table: ServedTable) -> None:
    levels, _ = drawn(table)
    swapped = np.array([1, 0, 2, 3, 4])
    verdict = verdict_on(table, levels | {"job": swapped[levels["job"]]})
    assert len(verdict.contradicted) == 5, "the column, and its four pairs"
    assert verdict.worst_columns == ["job"]


def test_nothing_measured_is_nothing_to_rely_on() -> None:
    scope: Scope = ("age", "city")
    pairs = {scope: PairDistance(scope, is_measured=False)}
    verdict = Verdict(RECORD, [], pairs, NOTHING_BOUGHT)
    assert verdict.tone is Tone.BAD
    assert verdict.expected is None
    assert verdict.furthest_pair is None


def test_what_is_missing_is_not_good(table: ServedTable) -> None:
    _, verdict = drawn(table)
    for record, said in (
        (replace(verdict.record, unknown=("senior",)), "Nothing is known of senior"),
        (replace(verdict.record, incomplete="Others were first."), "Others were first."),
    ):
        lacking = replace(verdict, record=record)
        assert lacking.tone is Tone.FAIR
        assert said in overview_of(lacking, columns()).sentences[0]


def test_a_table_that_is_off_is_made_again_from_later_charges() -> None:
    by_name = {column.name: column for column in columns_of("age", "city", "kind")}
    verdict = replace(verdict_of(RECORD), n_charges_since=3)
    assert "3 later charges" in overview_of(verdict, by_name).sentences[1]
