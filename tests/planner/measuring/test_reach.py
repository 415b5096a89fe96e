"""What cannot be worth its price, beside every weight that there is."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.measuring.hindsight import Reach
from planner.measuring.ski_rental import Evidence

UNITS = st.integers(0, 40)
RENTS = st.integers(0, 30).map(Fraction)


def added(units: int) -> Fraction:
    """Two blocks, one of which is held at 5 units."""
    return Fraction(max(0, units) + max(0, units - 5), 4)


@given(
    rows=st.lists(st.tuples(UNITS, RENTS), max_size=8),
    first=UNITS,
    rent_now=st.integers(0, 6).map(Fraction),
    n_purchases=st.integers(1, 9),
    share=st.fractions(0, 1, max_denominator=8),
    limit=st.integers(1, 40).map(Fraction),
    rent=RENTS,
)
def test_it_is_said_as_of_every_weight_tried(  # noqa: PLR0913, PLR0917 - what a choice is made of
    rows: list[tuple[int, Fraction]],
    first: int,
    rent_now: Fraction,
    n_purchases: int,
    share: Fraction,
    limit: Fraction,
    rent: Fraction,
) -> None:
    """The oracle goes through all weights, and adds up what each may answer."""
    evidence = Evidence(rent_now, n_purchases, share)

    def may_be(units: int) -> bool:
        answered = [one for needed, one in rows if needed <= units]
        of_answered = min(rent, sum(answered, Fraction(0)))
        worth = evidence.worth(of_answered, is_all=len(answered) == len(rows))
        return added(units) <= min(limit, worth)

    ordered = sorted(rows)
    sums = [sum((one for _, one in ordered[:n]), Fraction(0)) for n in range(len(rows) + 1)]
    reach = Reach(tuple(needed for needed, _ in ordered), tuple(sums))
    found = reach.worth_at_most(first, added, evidence, limit, rent)
    worth = [added(units) for units in range(first, 200) if may_be(units)]
    assert (found is not None) == bool(worth)
    assert found is None or max(worth) <= found


def test_there_is_a_rent_for_every_number_of_rows() -> None:
    with pytest.raises(ValueError, match="one more rent"):
        Reach((1, 2), (Fraction(0), Fraction(1)))
