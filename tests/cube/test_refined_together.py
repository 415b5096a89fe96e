"""Classes that are refined by many arrays at once are those of one array after the other."""

import numpy as np
import pytest

from cube import classes as module
from cube.classes import AxisClasses
from cube.pieces import Pieces, runs_of


def some_arrays(n_levels: int, n_arrays: int, rng: np.random.Generator) -> list[Pieces]:
    found = []
    for _ in range(n_arrays):
        first, last = np.sort(rng.integers(0, n_levels, size=2))
        within = np.arange(first, last + 1)
        values = np.zeros(n_levels, dtype=np.int64)
        values[within] = 1 if rng.random() < 0.7 else rng.integers(-2, 3, size=within.size)
        found.append(runs_of(values))
    return found


@pytest.mark.parametrize("n_levels", [1, 5, 40, 300, 5_000])
@pytest.mark.parametrize("n_arrays", [1, 2, 7, 60])
@pytest.mark.parametrize("n_codes_max", [2**22, 400])
def test_at_once_is_one_after_the_other(
    n_levels: int, n_arrays: int, n_codes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "N_CODES_MAX", n_codes_max)
    rng = np.random.default_rng(n_levels + n_arrays)
    for _ in range(5):
        before = AxisClasses.undivided(n_levels).refined(rng.integers(0, 3, size=n_levels))
        arrays = some_arrays(n_levels, n_arrays, rng)
        expected = before
        for one in arrays:
            expected = expected.refined(one)
        found = before.refined(*arrays)
        assert found.equals(expected)
        assert found.digest == expected.digest
        assert found.refined(*arrays) is found


def test_lines_keep_their_degree_at_once() -> None:
    line = Pieces(100, np.array([0, 10]), np.array([[0, 1, 0], [3, 0, 0]]))
    (flat,) = some_arrays(100, 1, np.random.default_rng(1))
    before = AxisClasses.undivided(100)
    expected = before
    for one in (line, flat, line, flat, flat, line):
        expected = expected.refined(one)
    found = before.refined(line, flat, line, flat, flat, line)
    assert found.equals(expected)
    assert found.degree == 1
