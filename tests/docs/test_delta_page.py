"""The page about a delta says what the prices are."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.cost.zcdp_account import GaussianAccount, constant_of
from cube.target import AccuracyTarget
from planner.measuring.weights import LAPLACE, GaussianKind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "delta.md"
ROWS = re.findall(
    r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE
)
COUNT = AccuracyTarget(half_width=100, confidence=0.95)
ONE = Fraction(1)


def test_there_is_a_table() -> None:
    assert len(ROWS) == 5


@pytest.mark.parametrize(("expected", "constant", "price", "gaussian", "laplace"), ROWS)
def test_a_line_of_the_table(
    expected: str, constant: str, price: str, gaussian: str, laplace: str
) -> None:
    terms = GaussianAccount().terms_for(Fraction(1, 10**9), Fraction(expected))
    kind, once = GaussianKind(terms), constant_of(terms)
    each = kind.cost(kind.fresh(COUNT, ONE))
    assert float(once) == pytest.approx(float(constant), abs=0.0005)
    assert float(each) == pytest.approx(float(price), abs=0.00005)
    assert (Fraction(expected) - once) // each == int(gaussian)
    assert Fraction(expected) // LAPLACE.cost(LAPLACE.fresh(COUNT, ONE)) == int(laplace)
