"""The auditor on streams: it computes what is lost on its own, and convicts what is false."""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.auditor.streams import lost_by_counters, lost_units, units_of_logarithm
from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.ledger.streams import VisitsReleased
from cube.encoding import canonical_json
from cube.exponential import epsilon_units_of
from cube.measurement import UNITS_PER_EPSILON
from streams.counters import CounterMechanism
from streams.mechanism import Mechanism
from streams.randomness import GeometricNoise, TwoPoint
from tests.support.a_stream import (
    ENDLESS,
    NOISY,
    UNITS,
    VISITS,
    ledger_on,
    noted,
    write_a_stream,
    write_visits,
)
from tests.support.audited import rechained

OPENED, BEGUN, RELEASED, HASHED, DROPPED, WATCHED, WATCHING, COUNTED = range(8)
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Entry]:
    path: Path = tmp_path_factory.mktemp("streams") / "a.ledger"
    with ledger_on(path, "2026-11-24") as ledger:
        write_a_stream(ledger)
    with closing(SqliteReader(path)) as reader:
        return tuple(reader.entries_after(0))


def test_what_the_ledger_notes_is_right(written: Sequence[Entry]) -> None:
    verdict = verify(written)
    assert verdict.problem is None
    hits, orders, visits = verdict.streams
    epsilon = Fraction(UNITS, UNITS_PER_EPSILON)
    assert (visits.epsilon, visits.spent, visits.n_epochs, visits.n_released) == (
        *(epsilon, epsilon),
        *(1, 1),
    )
    assert (hits.epsilon, hits.spent) == (epsilon, Fraction(0))
    assert [one.n_predicates for one in verdict.streams] == [0, 2, 0]
    assert (orders.epsilon, orders.spent, orders.n_released) == (3 * epsilon, 3 * epsilon, 1)


@given(st.integers(2**63 + 1, 2**64 - 1), st.integers(1, 2**64 - 1))
def test_what_is_lost_is_what_streams_say_by_another_series(p1: int, alpha: int) -> None:
    assert lost_units(p1, alpha) == Mechanism(TwoPoint(p1), GeometricNoise(alpha)).epsilon_units


@given(st.fractions(min_value=Fraction(1000001, 1000000), max_value=10**12))
def test_a_logarithm_is_rounded_up_as_the_exponential_says(ratio: Fraction) -> None:
    assert units_of_logarithm(ratio) == epsilon_units_of(ratio)


def to(value: Any, field: str) -> Change:
    return lambda body: body.__setitem__(field, value)


LIES = [
    (OPENED, to(UNITS - 1, "epsilon_units"), "its bits and noise lose"),
    (OPENED, to(UNITS + 1, "epsilon_units"), "its bits and noise lose"),
    (OPENED, to(ENDLESS.alpha - 2**40, "alpha"), "its bits and noise lose"),
    (OPENED, to(ENDLESS.p1 + 2**40, "p1"), "its bits and noise lose"),
    (OPENED, to(2**63, "p1"), "are out of range"),
    (OPENED, to(2**64, "alpha"), "are out of range"),
    (OPENED, to(0, "n_places"), "below 1"),
    (OPENED, to(1001, "n_places"), "too many users or places"),
    (OPENED, to("ab" * 16, "key"), "needs a key of 16 to 64 bytes"),
    (OPENED, to("hour", "epochs"), "must be one of day"),
    (OPENED, to(1, "has_departures"), "true or false"),
    (OPENED, to(UNITS - 1, "budget_units"), "below"),
    (BEGUN, to("2026-11-24", "epoch"), "outside its time"),
    (BEGUN, to(UNITS - 1, "units_after"), "recorded loss should be"),
    (BEGUN, to(1, "units_before"), "recorded loss should be"),
    (RELEASED, to("2026-11-24", "epoch"), "was released but never begun"),
    (RELEASED, to("3", "noisy_ones"), "not a whole number"),
    (HASHED, to(True, "has_departures"), "false if users share buckets"),
    (OPENED, to(["paid"], "predicates"), "its bits and noise lose"),
    (WATCHED, to(["paid"], "predicates"), "its bits and noise lose"),
    (WATCHED, to(["paid", "mobile", "old"], "predicates"), "its bits and noise lose"),
    (WATCHED, to(UNITS, "epsilon_units"), "its bits and noise lose"),
    (WATCHED, to(["paid", "Paid"], "predicates"), "predicates share a name"),
    (WATCHED, to(["paid", "user"], "predicates"), "the users' column"),
    (WATCHED, to([], "predicates"), "must have 1 to 16"),
    (WATCHED, to([f"p{k}" for k in range(17)], "predicates"), "must have 1 to 16"),
    (WATCHED, to(["paid", ""], "predicates"), "a name"),
    (WATCHED, to(["paid", 3], "predicates"), "predicates holds"),
    (WATCHED, to(2**32, "n_places"), "too many users or places"),
    (WATCHING, to(UNITS, "units_after"), "recorded loss should be"),
    (COUNTED, to([-3], "where"), "must have one number for each"),
    (COUNTED, to([-3, "5"], "where"), "where holds"),
    (RELEASED, to([5], "where"), "must have one number for each"),
]


@pytest.mark.parametrize(("place", "change", "said"), LIES)
def test_a_lie_is_found_at_its_entry(
    written: Sequence[Entry], place: int, change: Change, said: str
) -> None:
    body = json.loads(written[place].body)
    change(body)
    lying = replace(written[place], body=canonical_json(body))
    problem = verify(rechained([*written[:place], lying, *written[place + 1 :]])).problem
    assert problem is not None
    assert problem.startswith(f"entry {place + 1}: ")
    assert said in problem


def again(entries: Sequence[Entry], *places: int) -> list[Entry]:
    """The entries of these places, in this order."""
    chosen = [entries[place] for place in places]
    return rechained([replace(one, seq=seq) for seq, one in enumerate(chosen, start=1)])


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ((OPENED, BEGUN, RELEASED, RELEASED), "was released twice"),
        ((OPENED, RELEASED), "was released but never begun"),
        ((OPENED, BEGUN, BEGUN), "begun twice"),
        ((OPENED, OPENED), "opened twice"),
        ((BEGUN,), "must be opened"),
        ((HASHED, DROPPED, DROPPED), "was dropped"),
    ],
)
def test_what_is_told_twice_or_out_of_order_is_found(
    written: Sequence[Entry], places: Sequence[int], said: str
) -> None:
    start = min(one.at for one in written)
    entries = [replace(one, at=start) for one in written]
    problem = verify(again(entries, *places)).problem
    assert problem is not None
    assert problem.startswith(f"entry {len(places)}: ")
    assert said in problem


@given(st.integers(2**63 + 1, 2**64 - 1), st.integers(2**60, 2**64 - 1), st.integers(1, 24))
def test_what_counters_lose_is_what_streams_say(p1: int, alpha: int, n_releases: int) -> None:
    mechanism = CounterMechanism(5, TwoPoint(p1), GeometricNoise(alpha), n_releases)
    assert lost_by_counters(p1, alpha, n_releases) == mechanism.epsilon_units


@pytest.fixture(scope="module")
def of_visits(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Entry]:
    """Opened, begun, released at noon and at the end."""
    path: Path = tmp_path_factory.mktemp("visits") / "a.ledger"
    with ledger_on(path, "2026-11-24", 43_200) as ledger:
        write_visits(ledger)
    with ledger_on(path, "2026-11-25") as ledger:
        noted(ledger, "visits", VisitsReleased("2026-11-24", NOISY))
    with closing(SqliteReader(path)) as reader:
        return tuple(reader.entries_after(0))


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (0, to(VISITS.epsilon_units - 1, "epsilon_units"), "its bits and noise lose"),
        (0, to(3, "n_releases"), "its bits and noise lose"),
        (0, to(101, "levels"), "too far"),
        (0, to(1, "levels"), "below 2"),
        (0, to(25, "n_releases"), "too often"),
        (0, to("never", "epochs"), "no schedule"),
        (0, to(True, "has_departures"), "cannot be counted"),
        (0, lambda body: body.__delitem__("levels"), "only counters"),
        (2, to(3, "part"), "outside its time"),
        (2, to("2026-11-23", "epoch"), "never begun"),
        (2, to([1, 2], "noisy"), "must have 5 numbers"),
        (2, to(0, "part"), "below 1"),
        (2, lambda body: body.__delitem__("part"), "before its end"),
        (3, to(1, "part"), "outside its time"),
    ],
)
def test_a_lie_about_visits_is_found_at_its_entry(
    of_visits: Sequence[Entry], place: int, change: Change, said: str
) -> None:
    assert verify(of_visits).problem is None
    body = json.loads(of_visits[place].body)
    change(body)
    lying = replace(of_visits[place], body=canonical_json(body))
    problem = verify(rechained([*of_visits[:place], lying, *of_visits[place + 1 :]])).problem
    assert problem is not None
    assert problem.startswith(f"entry {place + 1}: ")
    assert said in problem


def test_the_same_part_twice_is_found(of_visits: Sequence[Entry]) -> None:
    problem = verify(rechained([*of_visits[:3], replace(of_visits[2], seq=4)])).problem
    assert problem is not None
    assert "released twice" in problem
