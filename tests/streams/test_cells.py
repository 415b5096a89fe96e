"""The state of counters: its draws word by word, its file, and what is not in it."""

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cube.refusals import DataChanged, StoreUnavailable
from streams.counters import CounterMechanism
from streams.randomness import GRID, GeometricNoise, TwoPoint
from streams.visit_epoch import HEADER, CellState, file_length, merge
from tests.support.entropy import SeededWords, WrittenWords

LAW = TwoPoint.for_epsilon(Fraction(1))
MECHANISM = CounterMechanism(3, LAW, GeometricNoise(GRID // 2))
NAME = bytes(range(32))
ONE, ZERO = LAW.threshold - 1, LAW.threshold  # of a present user
ABSENT_ONE, ABSENT_ZERO = GRID - LAW.threshold - 1, GRID - LAW.threshold
DEVIATIONS = 6  # odds of one in 500 million


def cells_of(path: Path) -> list[tuple[int, int]]:
    found = np.frombuffer(path.read_bytes()[HEADER.size :], np.uint8)
    return [(int(one) >> 1, int(one) & 1) for one in found]


def ids(*places: int) -> NDArray[np.int64]:
    return np.array(places, dtype=np.int64)


def test_a_position_moves_and_a_bit_is_drawn_where_it_comes_to_0(tmp_path: Path) -> None:
    words = WrittenWords(
        *(3, 1, 2, 0),  # modulo 3: the positions
        *(ABSENT_ONE, ABSENT_ZERO, ABSENT_ZERO, ABSENT_ZERO),
        *(ONE, ONE, ONE),
        ONE,
        ZERO,
    )
    path = tmp_path / "state"
    state = CellState.created(path, 4, MECHANISM, NAME, entropy=words)
    assert cells_of(path) == [(0, 1), (1, 0), (2, 0), (0, 0)]
    state.visit(ids(2, 0, 1))
    assert cells_of(path) == [(1, 1), (2, 0), (0, 1), (0, 0)], "one alone came to 0"
    state.visit(ids(3, 3, 3, 3))  # four visits pass 0 once: the bit is drawn
    assert cells_of(path)[3] == (1, 1)
    state.visit(ids(3, 3))
    assert cells_of(path)[3] == (0, 0)
    assert state.signed_counts().tolist() == [1 - 1, 1, -1]
    assert state.signed_counts(1, 3).tolist() == [1, 0, -1]
    assert words.n_drawn == 13
    state.close()


def test_positions_of_an_incomplete_round_are_drawn_again(tmp_path: Path) -> None:
    """2**64 is one more than a multiple of 3: the last word would be a 0 too many."""
    words = WrittenWords(GRID - 1, 2, 1, ABSENT_ZERO, ABSENT_ZERO)
    path = tmp_path / "state"
    with closing(CellState.created(path, 2, MECHANISM, NAME, entropy=words)):
        assert cells_of(path) == [(1, 0), (2, 0)]


def test_a_call_does_what_its_visits_do_one_by_one(tmp_path: Path) -> None:
    """In law: where each user stands, and the share of ones by what was passed."""
    n_users, levels = 30_000, 3
    visits = np.arange(n_users) % 5
    every = np.repeat(np.arange(n_users), visits)
    for name, calls in (
        ("together", [every]),
        ("apart", [np.flatnonzero(visits > k) for k in range(5)]),
    ):
        path = tmp_path / name
        state = CellState.created(path, n_users, MECHANISM, NAME, entropy=SeededWords(5))
        for call in calls:
            state.visit(call)
        state.close()
        found = np.array(cells_of(path))
        for n_visits in range(5):
            for c in range(levels):
                here = found[(visits == n_visits) & (found[:, 0] == c), 1]
                n = n_users / 5 / levels
                assert abs(here.size - n) < DEVIATIONS * np.sqrt(n)
                expected = float(LAW.p1 if n_visits > c else LAW.p0)
                wrong = 1 - expected
                deviation = np.sqrt(expected * wrong / n)
                assert abs(here.mean() - expected) < DEVIATIONS * deviation
                assert abs(here.mean() - wrong) > DEVIATIONS * deviation, "the other law is seen"


def test_a_state_goes_on_where_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = CellState.created(path, 100, MECHANISM, NAME)
    state.visit(np.arange(50))
    with pytest.raises(StoreUnavailable):
        CellState.opened(path, 100, MECHANISM, NAME)
    state.sync()
    state.close()
    before = cells_of(path)
    with closing(CellState.opened(path, 100, MECHANISM, NAME)) as again:
        assert cells_of(path) == before
        assert again.is_of(MECHANISM)
    assert path.stat().st_size == file_length(100)


def test_a_state_of_another_law_length_or_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    CellState.created(path, 100, MECHANISM, NAME).close()
    other = CounterMechanism(4, LAW, MECHANISM.output)
    for n_cells, mechanism, name in (
        (101, MECHANISM, NAME),
        (100, other, NAME),
        (100, MECHANISM, bytes(32)),
    ):
        with pytest.raises(DataChanged):
            CellState.opened(path, n_cells, mechanism, name)
    with pytest.raises(FileExistsError):
        CellState.created(path, 100, MECHANISM, NAME)


def test_nothing_but_the_header_and_the_cells_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = CellState.created(path, 10, MECHANISM, NAME)
    state.visit(ids(*[7] * 1000))
    held = path.read_bytes()
    assert len(held) == HEADER.size + 10
    assert HEADER.unpack(held[: HEADER.size]) == (b"TACITVIS", 10, LAW.threshold, NAME, 3)
    assert all(byte < 2 * 3 for byte in held[HEADER.size :])
    state.erase()
    assert not path.exists()


def test_states_of_disjoint_users_are_merged_one_behind_the_other(tmp_path: Path) -> None:
    states = [CellState.created(tmp_path / name, 50, MECHANISM, NAME) for name in ("a", "b")]
    states[0].visit(np.arange(50))
    merged = merge(tmp_path / "both", states, MECHANISM, bytes(32))
    apart = [state.signed_counts() for state in states]
    assert cells_of(tmp_path / "both") == cells_of(tmp_path / "a") + cells_of(tmp_path / "b")
    assert np.array_equal(merged.signed_counts(), apart[0] + apart[1])
    assert np.array_equal(merged.signed_counts(50, 100), apart[1])
    merged.visit(np.arange(50, 100))  # it goes on with the users of both
    assert np.array_equal(merged.signed_counts(0, 50), apart[0])
    other = CounterMechanism(4, LAW, MECHANISM.output)
    with pytest.raises(ValueError, match="different laws"):
        merge(tmp_path / "none", states, other, bytes(32))
    for state in (*states, merged):
        state.close()


def test_places_and_sizes_are_checked(tmp_path: Path) -> None:
    with closing(CellState.created(tmp_path / "state", 10, MECHANISM, NAME)) as state:
        for place in (-1, 10):
            with pytest.raises(IndexError):
                state.visit(ids(place))
        with pytest.raises(IndexError):
            state.signed_counts(0, 11)
        state.visit(ids())
    with pytest.raises(ValueError, match="cells"):
        CellState.created(tmp_path / "other", 0, MECHANISM, NAME)
    with pytest.raises(ValueError, match="32 bytes"):
        CellState.created(tmp_path / "other", 1, MECHANISM, b"")
