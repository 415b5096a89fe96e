"""Numbers of a refusal: what they may be, and the sentences that are made of them."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import ColumnCost, FreeWidth, OfferedWidth, Shortfall

SHORTFALL = Shortfall(table="t", epsilon_needed=Fraction(1, 3), epsilon_left=Fraction(2, 9))
WIDTHS = st.floats(1e-9, 1e15)


def test_a_price_is_rounded_up_and_what_is_left_down() -> None:
    assert SHORTFALL.budget_text == "This costs epsilon 0.333334, and t has 0.222222 left."
    assert SHORTFALL.cap_text == "This costs epsilon 0.333334, more than the cap of 0.222222."


@pytest.mark.parametrize(("window", "when"), [("", ""), ("day", " this day")])
def test_a_limit_is_named_with_its_window(window: str, when: str) -> None:
    limit = replace(SHORTFALL, account="group:g", window=window)
    assert limit.limit_text == (
        "This costs epsilon 0.333334, and the next query of group:g may cost at most 0.222222 on t"
        f"{when}."
    )


def test_what_could_be_asked_instead_comes_before_the_general_advice() -> None:
    one, several = OfferedWidth.widened(2.0, {4.0}), OfferedWidth.widened(1.5, {1.0, 4.0})
    assert replace(SHORTFALL, free=one, fitting=several).way_out == (
        "Free right now: half_width 8. "
        "What is left pays for: 1.5 times the half_widths asked for. "
        "Ask for a wider half_width or a lower confidence, or with fallback => 'history' for what "
        "is free."
    )
    assert replace(SHORTFALL, fitting=one).way_out_of_cap == (
        "Within the cap: half_width 8. Raise the epsilon option, or ask for a wider half_width."
    )
    assert replace(SHORTFALL, free=one).unadvised == SHORTFALL


def test_of_several_columns_each_has_its_price_and_what_is_free() -> None:
    several = OfferedWidth.widened(1.5, {1.0, 4.0})
    columns = (ColumnCost("n", Fraction(1, 4), 12.5), ColumnCost("a", Fraction(1, 12), 0.25))
    assert replace(SHORTFALL, free=several, columns=columns).way_out.startswith(
        "Of that, by column: n 0.25, a 0.0833334. "
        "Free right now: half_width of n 12.5, a 0.25. Ask for"
    )
    unknown = (columns[0], replace(columns[1], free=None))
    assert replace(SHORTFALL, columns=unknown).way_out.startswith(
        "Of that, by column: n 0.25, a 0.0833334. Ask for"
    )
    alone = replace(SHORTFALL, columns=columns[:1])
    assert alone.way_out == SHORTFALL.way_out
    with pytest.raises(ValueError, match="must be hidden too"):
        replace(alone, epsilon_left=None)


def test_a_budget_that_renews_says_when() -> None:
    renewing = replace(SHORTFALL, renews_on="2027-01-01")
    assert renewing.way_out.startswith("The budget renews on 2027-01-01. Ask for a wider")
    made = replace(renewing, is_synthetic=True)
    assert made.way_out.startswith("The budget renews on 2027-01-01. Ask for a smaller")
    with pytest.raises(ValueError, match="must be hidden too"):
        replace(renewing, epsilon_left=None)


def test_of_what_is_hidden_no_sentence_speaks() -> None:
    hidden = replace(SHORTFALL, epsilon_left=None)
    said = "This costs epsilon 0.333334, more than what is left of t's budget or of a limit."
    assert {hidden.budget_text, hidden.limit_text, hidden.cap_text} == {said}
    assert hidden.way_out == "Ask for a wider half_width or a lower confidence."


def test_a_synthetic_table_has_an_epsilon_and_no_half_width() -> None:
    made = replace(SHORTFALL, is_synthetic=True)
    assert made.budget_text == "The table may cost epsilon 0.333334, and t has 0.222222 left."
    assert (
        made.way_out
        == "Ask for a smaller epsilon. With 0, the table is made from the history alone."
    )
    assert made.way_out_of_cap == "Ask for a smaller epsilon, or raise tacit.epsilon."


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon_needed": Fraction(2, 9)},
        {"epsilon_left": Fraction(-1)},
        {"epsilon_left": None, "account": "group:g"},
        {"epsilon_left": None, "window": "day"},
        {"epsilon_left": None, "free": OfferedWidth(2.0)},
        {"epsilon_left": None, "fitting": OfferedWidth(2.0)},
    ],
)
def test_numbers_that_contradict_each_other_or_what_is_hidden_are_none(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match=r"left|negative"):
        replace(SHORTFALL, **wrong)


def test_an_epsilon_is_exact() -> None:
    with pytest.raises(TypeError, match="exact"):
        replace(SHORTFALL, epsilon_needed=0.5)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("number", [0.0, -1.0, float("inf"), float("nan")])
def test_an_offered_width_is_a_positive_number(number: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        OfferedWidth(number)


@given(factor=st.floats(1.0, 2.0**20), half_width=WIDTHS)
def test_an_offered_width_is_what_its_text_says_and_never_too_narrow(
    factor: float, half_width: float
) -> None:
    offered = OfferedWidth.widened(factor, {half_width})
    assert offered.half_width is not None
    assert factor <= offered.factor <= factor * 1.002
    assert factor * half_width <= offered.half_width <= factor * half_width * 1.002
    text = str(offered).removeprefix("half_width ")
    assert float(text) == offered.half_width
    assert "e" not in text.lower()
    assert len(Decimal(text).normalize().as_tuple().digits) <= 4


def test_a_half_width_beyond_all_numbers_is_offered_as_a_factor_alone() -> None:
    assert OfferedWidth.widened(2.0, {1.5e308}) == OfferedWidth(2.0)


def test_a_free_width_is_said_with_its_answer() -> None:
    assert str(FreeWidth("mean age", 1.23456789)) == "mean age 1.23457"
