"""When Gaussian noise may be bought, and on which terms."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.cost.zcdp_account import GaussianAccount, best_terms, constant_of
from cube.measurement import UNITS_PER_EPSILON
from planner.measuring.weights import (
    LAPLACE,
    ONLY_LAPLACE,
    GaussianKind,
    GaussianOffer,
    offered_kinds,
)

BILLIONTH = Fraction(1, 10**9)
OFFER = GaussianOffer(BILLIONTH, Fraction(2, 5))
TERMS = best_terms(BILLIONTH, Fraction(2, 5))
BEGUN = GaussianAccount(TERMS, 0)


def test_without_an_offer_there_is_laplace_noise_alone() -> None:
    assert offered_kinds(None, BEGUN, 10**15) is ONLY_LAPLACE


def test_an_account_that_has_begun_is_open_on_its_own_terms() -> None:
    other = GaussianOffer(BILLIONTH, Fraction(3))
    offered = offered_kinds(other, BEGUN, 0)
    assert offered.kinds == (LAPLACE, GaussianKind(TERMS))
    assert offered.opening == 0


def test_under_another_delta_than_the_tables_nothing_gaussian_is_bought() -> None:
    assert offered_kinds(GaussianOffer(2 * BILLIONTH, Fraction(2, 5)), BEGUN, 0) is ONLY_LAPLACE


def test_who_says_what_they_expect_begins_at_once() -> None:
    declared = GaussianOffer(BILLIONTH, Fraction(2, 5), is_declared=True)
    offered = offered_kinds(declared, GaussianAccount(), 0)
    assert offered.kinds == (LAPLACE, GaussianKind(TERMS))
    assert offered.opening == constant_of(TERMS)
    assert 0 < offered.opening < Fraction(2, 5)


@given(prices=st.lists(st.floats(1e-6, 0.3), min_size=1), share=st.floats(0.01, 1.5))
def test_otherwise_at_most_twice_is_spent_of_what_laplace_noise_costs(
    prices: list[float], share: float
) -> None:
    """Whatever Gaussian noise costs instead: here a share of it, more than all of it included."""
    spent, has_begun = 0.0, False
    for price in prices:
        account = BEGUN if has_begun else GaussianAccount()
        offered = offered_kinds(OFFER, account, int(spent * UNITS_PER_EPSILON))
        if len(offered.kinds) > 1:
            spent += float(offered.opening) + min(price, share * price)
            has_begun = True
        else:
            spent += price
    assert spent <= 2 * sum(prices) + 1e-9


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1)])
def test_an_offer_has_a_delta(delta: Fraction) -> None:
    with pytest.raises(ValueError, match="delta"):
        GaussianOffer(delta, Fraction(1))
