"""What parents are worth: against chi-square, and where a parent tells nothing or only together."""

import numpy as np
import pytest
from scipy.stats import chi2

from synthesis.networks.score import mutual_information
from synthesis.privbayes.greedy import Draw, n_simulations, parents_worth
from synthesis.tables import Floats

N_ROWS = 5_000
ODDS = 0.001


def counted(rng: np.random.Generator, n_tables: int = 400) -> Draw:
    """Tables whose only noise is that of drawing rows."""

    def drawn(law: Floats) -> Floats:
        tables = rng.multinomial(N_ROWS, law.ravel(), size=n_tables) / N_ROWS
        return np.asarray(tables).reshape(n_tables, *law.shape)

    return drawn


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (5, 20)])
def test_with_the_noise_of_counts_it_asks_for_what_chi_square_says(shape: tuple[int, int]) -> None:
    """Twice the rows times the information is chi-square; simulated means are off by some tenths.

    Wide tables have to pay for their noise, small ones have to be beyond chance.
    """
    rng = np.random.default_rng(1)
    n_free = (shape[0] - 1) * (shape[1] - 1)
    needed = max(float(chi2.isf(ODDS, n_free)), 2 * n_free)
    even = np.full(shape, 1 / (shape[0] * shape[1]))
    leaning = np.outer(np.linspace(-1, 1, shape[0]), np.linspace(-1, 1, shape[1])) / even.size
    for factor, is_worth in ((0.75, False), (1.35, True)):
        low, high = 0.0, 0.9
        for _ in range(40):  # the law whose information is this part of what is needed
            middle = (low + high) / 2
            law = even + middle * leaning
            shown = 2 * N_ROWS * mutual_information(law[np.newaxis], 0)[0]
            low, high = (middle, high) if shown < factor * needed else (low, middle)
        found = parents_worth(even + low * leaning, counted(rng), ODDS)
        assert (found > 0) == is_worth, (factor, found)
        if is_worth:
            akaike = (factor * needed - 2 * n_free) / (2 * N_ROWS)
            assert found == pytest.approx(akaike, abs=0.3 * n_free / (2 * N_ROWS))


def test_a_parent_has_to_tell_something_beside_the_others() -> None:
    """A copy of a parent is none, though both together tell all that the one tells."""
    rng = np.random.default_rng(2)
    pair = np.array([[0.4, 0.1], [0.1, 0.4]])
    copied = np.zeros((2, 2, 2))
    copied[:, [0, 1], [0, 1]] = pair
    assert parents_worth(pair, counted(rng), ODDS) > 0
    assert parents_worth(copied, counted(rng), ODDS) <= 0
    assert parents_worth(np.multiply.outer(pair, [0.5, 0.5]), counted(rng), ODDS) <= 0


def test_parents_that_tell_only_together_are_worth_having_together() -> None:
    rng = np.random.default_rng(3)
    odd = np.indices((2, 2, 2)).sum(axis=0) % 2
    law = np.where(odd, 0.05, 0.2)
    assert parents_worth(law, counted(rng), ODDS) > 0
    assert parents_worth(law.sum(axis=2), counted(rng), ODDS) <= 0


def test_chance_makes_parents_at_the_odds() -> None:
    """Of 1,000 independent tables 50 at odds of .05, 20 to 85 with what 100 draws miss of a tail.

    Teeth: twice the mean alone is passed by chi-square of one degree 157 times.
    """
    rng = np.random.default_rng(4)
    law = np.outer([0.3, 0.7], [0.5, 0.5])
    drawn = counted(rng, 100)
    taken = sum(parents_worth(one, drawn, 0.05) > 0 for one in counted(rng, 1_000)(law))
    assert 20 <= taken <= 85


def test_a_column_of_one_level_tells_nothing() -> None:
    rng = np.random.default_rng(5)
    with np.errstate(all="raise", under="ignore"):
        assert parents_worth(np.array([[0.4], [0.6]]), counted(rng), ODDS) <= 0
        assert parents_worth(np.array([[0.4, 0.6], [0.0, 0.0]]), counted(rng), ODDS) <= 0


@pytest.mark.parametrize("n_parents", [1, 2, 3])
def test_tables_are_drawn_as_often_as_is_said(n_parents: int) -> None:
    rng, n_drawn = np.random.default_rng(6), 0

    def drawn(law: Floats) -> Floats:
        nonlocal n_drawn
        n_drawn += 1
        return counted(rng)(law)

    shape = (2,) * (n_parents + 1)
    parents_worth(np.full(shape, 0.5 ** (n_parents + 1)), drawn, ODDS)
    assert n_drawn == n_simulations(tuple("abc"[:n_parents]))
