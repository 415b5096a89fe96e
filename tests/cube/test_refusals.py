"""The tree of refusals: numbers and positions beside the words, and words made of them alone."""

from dataclasses import replace
from fractions import Fraction

import pytest

from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    GenerationOver,
    LimitReached,
    NotCovered,
    Refused,
    TargetNotReached,
    TextPosition,
    TooSlow,
)
from tests.support.refusals import FREE, SHORTFALL, kinds_of_refusal, refusal_of


@pytest.mark.parametrize("kind", list(kinds_of_refusal()), ids=lambda kind: kind.__name__)
def test_every_kind_explains_itself(kind: type[Refused]) -> None:
    refusal = refusal_of(kind)
    assert refusal.explain() == f"{refusal.message} {refusal.hint}"
    assert refusal.position is None


def test_what_is_not_covered_is_said_from_its_numbers() -> None:
    said = {kind: kind(SHORTFALL).message for kind in NotCovered.__subclasses__()}
    assert said == {
        BudgetExhausted: SHORTFALL.budget_text,
        LimitReached: SHORTFALL.limit_text,
        CostAboveCap: SHORTFALL.cap_text,
        GenerationOver: SHORTFALL.over_text,
    }
    with pytest.raises(NotImplementedError):
        NotCovered(SHORTFALL)


def test_a_target_that_was_not_reached_says_why_and_what_is_free_now() -> None:
    stopped = TargetNotReached(
        epsilon_spent=Fraction(1), free=FREE, because=BudgetExhausted(SHORTFALL)
    )
    assert stopped.explain() == (
        f"The target was not reached. {SHORTFALL.budget_text} The measurements made so far are "
        "paid for and kept. These half-widths are free now: a 12.5, b 0.25."
    )
    assert stopped.shortfall == replace(SHORTFALL, free=None, fitting=None)
    late = TargetNotReached(epsilon_spent=Fraction(1), free=FREE, because=TooSlow("Too late."))
    assert "not reached. Too late. The measurements" in late.message
    assert late.shortfall is None
    unpaid = TargetNotReached(epsilon_spent=Fraction(0), free=FREE, why="It may cost more.")
    assert unpaid.message == "The target was not reached. It may cost more."


def test_a_position_counts_from_one_and_is_said_in_words() -> None:
    assert str(TextPosition(2, 25)) == "line 2, column 25"
    with pytest.raises(ValueError, match="count from 1"):
        TextPosition(1, 0)
