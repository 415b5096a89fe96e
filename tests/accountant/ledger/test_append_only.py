"""Append-only sequences against tuples that are copied each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.ledger.values import AppendOnly


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(), max_size=3)), max_size=8))
def test_every_sequence_ever_made_stays_what_it_was(steps: list[tuple[int, list[int]]]) -> None:
    made: list[AppendOnly[int]] = [AppendOnly()]
    expected: list[tuple[int, ...]] = [()]
    for chosen, items in steps:
        place = chosen % len(made)
        made.append(made[place].followed_by(items))
        expected.append((*expected[place], *items))
    assert [tuple(one) for one in made] == expected
    assert [one[1:] for one in made] == [one[1:] for one in expected]
    assert [one[-2:] for one in made] == [one[-2:] for one in expected]
    assert [one[3:1] for one in made] == [one[3:1] for one in expected]
    assert [one[::-2] for one in made] == [one[::-2] for one in expected]


def test_what_was_appended_to_another_is_out_of_reach() -> None:
    short = AppendOnly([1, 2])
    assert len(short.followed_by([3])) == 3
    assert short[-1] == 2
    with pytest.raises(IndexError):
        short[2]
