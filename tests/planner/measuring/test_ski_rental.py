"""Ski rental: which rows are rented on a scope, what redeems them, what may be paid for that."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.cost.row_cost import most_of
from accountant.ledger.charged import ChargedBlock, ChargedDistance
from accountant.ledger.entries import Charge
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import GaussianNoise, LatticeNoise
from cube.axis import IntegerAxis
from cube.encoding import fingerprint
from cube.measurement import GaussianTerms, PlannedMeasurement, Precision, Weight
from cube.query import Factor, QueryBlock, Scope, counting
from cube.schema import Schema
from cube.statistic import Distance
from planner.measuring.candidates import families
from planner.measuring.ski_rental import Evidence, SkiRental, is_due, rent_at_most

SCHEMA = Schema(
    table="t",
    axes=(
        *(IntegerAxis(name=name, low=0, high=2) for name in "abc"),
        IntegerAxis(name="long", low=0, high=99),
    ),
    n_records_max=1000,
)

TERMS = GaussianTerms(Fraction(1, 10**9), Fraction(50))


def narrow(*axes: str) -> QueryBlock:
    """A row on a scope."""
    values = np.array([1, 0, 1], dtype=np.int64)
    return QueryBlock(counting([Factor((name,), values) for name in axes]))


def cells(scope: Scope) -> QueryBlock:
    """Every cell of a scope."""
    return families(scope, SCHEMA)[0][0]


def charged(block: QueryBlock, units: int, raised_from: int | None = None) -> Charge:
    """A charge of one block at a weight."""
    noise = LatticeNoise.for_weight(Weight(units))
    return Charge(Payer("me"), (ChargedBlock(block, noise, raised_from),), 0, units)


def charged_gaussian(block: QueryBlock, bought: int, raised_from: int | None = None) -> Charge:
    """A charge of one block for so much precision."""
    noise = GaussianNoise.for_precision(Precision(bought))
    return Charge(Payer("me"), (ChargedBlock(block, noise, raised_from),), 0, 1, terms=TERMS)


def paid(*purchases: tuple[int, QueryBlock]) -> SkiRental:
    """The rental after blocks were bought at these weights, one after the other."""
    rental = SkiRental(SCHEMA)
    rental.add([charged(block, units) for units, block in purchases])
    return rental


def rented(rental: SkiRental, *scope: str) -> dict[str, int]:
    """What was paid for each block that is rented on a scope."""
    return {fingerprint(rows.block): rows.units for rows in rental.on(scope)}


def test_rows_are_rented_on_every_scope_that_contains_theirs() -> None:
    a, ab, c = narrow("a"), narrow("a", "b"), narrow("c")
    rental = paid((5, a), (7, ab), (9, c))
    assert rented(rental, "a") == {fingerprint(a): 5}
    assert rented(rental, "a", "b") == {fingerprint(a): 5, fingerprint(ab): 7}
    assert rent_at_most(rental.on(("a", "b", "c"))) == Fraction(21, 2**40)
    assert not rental.on(("b",))
    assert rental.scopes == (("a",), ("a", "b"), ("c",))
    assert rental.n_charges == 3


def test_a_raise_adds_what_it_was_paid() -> None:
    rental = SkiRental(SCHEMA)
    rental.add([charged(narrow("a"), 5), charged(narrow("a"), 8, raised_from=0)])
    (rows,) = rental.on(("a",))
    assert (rows.units, rows.weight_units) == (8, 8)


def test_after_a_purchase_only_what_is_paid_later_is_rent() -> None:
    rental = SkiRental(SCHEMA)
    rental.add([charged(narrow("a"), 5), charged(cells(("a", "b")), 5)])
    assert not rental.on(("a",))
    assert not rental.on(("a", "b"))
    rental.add([charged(narrow("a"), 8, raised_from=0)])
    (rows,) = rental.on(("a", "b"))
    assert (rows.units, rows.weight_units) == (3, 8)


def test_cells_and_the_levels_of_a_hierarchy_are_no_rent() -> None:
    hierarchy = families(("long",), SCHEMA)[2]
    assert len(hierarchy) == 3
    rental = paid((3, narrow("a")), (4, cells(("b",))), *((4, level) for level in hierarchy))
    assert rental.scopes == (("a",),)


def test_rows_with_gaussian_noise_are_rent_in_units_of_the_tables_cost() -> None:
    half, more = 2**95, 2**93
    rental = SkiRental(SCHEMA)
    rental.add([charged_gaussian(narrow("a"), half), charged_gaussian(narrow("a"), more, 0)])
    (rows,) = rental.on(("a", "b"))
    assert (rows.units, rows.weight_units, rows.terms) == (half + more, half + more, TERMS)
    alike = PlannedMeasurement(narrow("a"), Precision(half + more), terms=TERMS)
    assert rent_at_most([rows]) == Fraction(most_of(alike), 2**40)
    rental.add([charged(narrow("a"), 7)])
    assert rent_at_most(rental.on(("a",))) == Fraction(most_of(alike) + 7, 2**40)


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_cells_of_either_kind_redeem_rows_of_both(is_gaussian: bool) -> None:
    rental = SkiRental(SCHEMA)
    rental.add([charged(narrow("a"), 5), charged_gaussian(narrow("b"), 2**90)])
    whole = cells(("a", "b"))
    rental.add([charged_gaussian(whole, 2**90) if is_gaussian else charged(whole, 2**38)])
    assert not rental.scopes
    rental.add([charged_gaussian(narrow("b"), 2**89, 1)])
    (rows,) = rental.on(("b",))
    assert (rows.units, rows.weight_units) == (2**89, 2**90 + 2**89)


def test_the_cost_of_statistics_is_not_rent() -> None:
    rental = SkiRental(SCHEMA)
    asked = ChargedDistance(
        Distance(narrow("a"), (3,)), LatticeNoise.for_weight(Weight.at_least(1.0))
    )
    rental.add([Charge(Payer("me"), (), 0, 5, (asked,))])
    assert rental.n_charges == 1
    assert not rental.on(("a",))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rent_is_computed_from_the_charges_alone(order: tuple[int, int]) -> None:
    charges = [(5, narrow("a")), (6, narrow("b"))]
    rental = paid(*(charges[place] for place in order))
    assert rent_at_most(rental.on(("a", "b"))) == Fraction(11, 2**40)


def test_a_copy_does_not_change() -> None:
    rental = paid((5, narrow("a")))
    copy = rental.copy()
    rental.add([charged(narrow("a", "b"), 7)])
    assert len(copy.on(("a", "b"))) == 1


FRACTIONS = st.fractions(0, 10)


@given(FRACTIONS, st.tuples(FRACTIONS, FRACTIONS, FRACTIONS), st.integers(0, 1000), st.booleans())
def test_what_may_be_paid_is_the_rent_now_or_at_most_twice_all_rent(
    now: Fraction, spent: tuple[Fraction, Fraction, Fraction], n_purchases: int, is_all: bool
) -> None:
    rent, held, others = spent

    def worth(n_purchases: int, others: Fraction) -> Fraction:
        of_table = rent + held + others
        found = Evidence.of(now, n_purchases, rent=rent, held=held, of_table=of_table)
        return found.worth(rent, is_all=is_all)

    assert now <= worth(n_purchases, others) <= 2 * (now + rent)
    assert worth(n_purchases, others) <= worth(n_purchases + 1, others)
    assert worth(n_purchases, others) >= worth(n_purchases, 2 * others)


def test_less_is_ventured_where_many_scopes_share_a_table() -> None:
    """Of the rent and a share of it, 40 / 41 after forty purchases on the only scope."""
    nothing, rent = Fraction(0), Fraction(1)

    def worth(held: int, of_table: int, *, is_all: bool = True) -> Fraction:
        found = Evidence.of(
            nothing, 40, rent=rent, held=Fraction(held), of_table=Fraction(of_table)
        )
        return found.worth(rent, is_all=is_all)

    assert worth(0, 1) == worth(0, 1, is_all=False) == Fraction(40, 41) * 2
    assert worth(0, 10) == 40 / (40 + Fraction(28, 10)) * Fraction(11, 10)
    assert worth(4, 10) == 40 / Fraction(42) * Fraction(3, 2)
    assert worth(4, 10, is_all=False) == 40 / Fraction(42)


def test_rows_that_were_replaced_still_speak_for_their_scope() -> None:
    rental = paid((5, narrow("a")), (6, narrow("a", "b")), (7, cells(("a", "b"))))
    assert not rental.on(("a", "b"))
    assert (rental.n_purchases(("a",)), rental.n_purchases(("a", "b"))) == (1, 3)


def test_rows_with_less_noise_than_a_wide_purchase_stay_rented() -> None:
    rental = paid((5, narrow("a")), (9, narrow("b")), (7, cells(("a", "b"))))
    assert [rows.units for rows in rental.on(("a", "b"))] == [9]


@given(st.integers(0, 2**60), st.integers(1, 2**60))
def test_a_step_comes_before_there_is_a_sixteenth_more(before: int, now: int) -> None:
    """And first numbers are all steps, so that nothing is put off while little is rented."""
    if not is_due(before, now):
        assert 16 * now < before
    if before < 32:
        assert is_due(before, now)


def test_what_is_not_due_becomes_due_with_what_follows() -> None:
    """However small the parts in which a number grows, it passes the same steps."""
    in_ones = sum(is_due(n, 1) for n in range(1000))
    assert in_ones == 32 + 16 * 4 + 15  # up to 32, four doublings of sixteen steps, and the rest
    assert [n for n in range(64, 80) if is_due(n, 1)] == [67, 71, 75, 79]
