"""Search patterns mean what LIKE means to DuckDB, and no pattern is slow."""

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.flight.catalog import matches

TEXT = st.text("ab%_\\\n", max_size=8)


def has_dangling_escape(pattern: str) -> bool:
    n_escapes = len(pattern) - len(pattern.rstrip("\\"))
    return n_escapes % 2 == 1


@given(pattern=TEXT.filter(lambda pattern: not has_dangling_escape(pattern)), name=TEXT)
def test_a_pattern_matches_what_like_matches(pattern: str, name: str) -> None:
    found = duckdb.execute("SELECT ? LIKE ? ESCAPE '\\'", [name, pattern]).fetchone()
    assert found == (matches(pattern, name),)


def test_an_escape_at_the_end_stands_for_itself() -> None:
    assert matches("a\\", "a\\")
    assert not matches("a\\", "a")


def test_a_hostile_pattern_takes_a_bounded_number_of_steps() -> None:
    # A backtracking regular expression would need about 2**60 steps here: this test would hang.
    assert not matches("%a" * 60 + "b", "a" * 120)
