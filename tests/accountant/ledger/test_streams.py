"""Streams in a ledger: an epoch is paid for once, in its time, and released once, after its end."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.auditor import streams as audited
from accountant.auditor.verify import verify
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Window
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.ledger.streams import (
    EpochBegun,
    EpochReleased,
    StreamBody,
    StreamDropped,
    VisitsReleased,
)
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import LedgerCorrupt
from streams.mechanism import best_mechanism
from tests.support.a_stream import (
    DAILY,
    ENDLESS,
    HASHED,
    NOISY,
    UNITS,
    VISITS,
    WATCHED,
    ledger_on,
    noted,
    write_a_stream,
    write_visits,
)
from tests.support.fakes import KnownTable
from tests.support.generations import FUNDS
from tests.support.seven_people import RECORDS, SCHEMA

TODAY, TOMORROW = "2026-11-24", "2026-11-25"
BEGUN = EpochBegun(TODAY, 0, UNITS)


def written(path: Path, bodies: Sequence[tuple[str, StreamBody]]) -> None:
    """Entries about the stream `visits`, each on its day."""
    for day, body in bodies:
        with ledger_on(path, day) as ledger:
            noted(ledger, "visits", body)


def test_an_epoch_is_begun_and_released_and_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    written(path, [(TODAY, DAILY), (TODAY, BEGUN), (TOMORROW, EpochReleased(TODAY, (-3,)))])
    with open_ledger(path) as ledger:
        history = ledger.streams.streams["visits"]
        assert history.opened == DAILY
        assert dict(history.released) == {TODAY: (-3,)}
        assert history.units_spent == UNITS


def test_a_release_of_predicates_is_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with ledger_on(path, TODAY) as ledger:
        write_a_stream(ledger)
        bodies = [json.loads(entry.body) for entry in ledger.entries()]
    assert not any("predicates" in body for body in bodies[:5]), "as ledgers were before there were"
    assert bodies[-1] == {"epoch": "all", "noisy_ones": 400, "where": [-3, 77]}
    with open_ledger(path) as ledger:
        history = ledger.streams.streams["orders"]
        assert history.opened == WATCHED
        assert dict(history.released) == {"all": (400, -3, 77)}
        assert history.units_spent == 3 * UNITS


REFUSED: dict[str, tuple[list[tuple[str, StreamBody]], str]] = {
    "not opened": ([(TODAY, BEGUN)], "not opened"),
    "opened twice": ([(TODAY, DAILY), (TODAY, DAILY)], "opened twice"),
    "begun twice": ([(TODAY, DAILY), (TODAY, BEGUN), (TODAY, BEGUN)], "begun twice"),
    "begun early": ([(TODAY, DAILY), (TODAY, EpochBegun(TOMORROW, 0, UNITS))], "outside its time"),
    "begun late": ([(TODAY, DAILY), (TOMORROW, BEGUN)], "outside its time"),
    "too cheap": (
        [(TODAY, DAILY), (TODAY, EpochBegun(TODAY, 0, UNITS - 1))],
        "is not the loss of one epoch",
    ),
    "beyond its budget": (
        [
            (TODAY, replace(DAILY, budget_units=2 * UNITS - 1)),
            (TODAY, BEGUN),
            (TOMORROW, EpochBegun(TOMORROW, UNITS, 2 * UNITS)),
        ],
        "exceeds the budget",
    ),
    "released unopened": ([(TODAY, DAILY), (TOMORROW, EpochReleased(TODAY, (1,)))], "never begun"),
    "released early": (
        [(TODAY, DAILY), (TODAY, BEGUN), (TODAY, EpochReleased(TODAY, (1,)))],
        "before its end",
    ),
    "released twice": (
        [
            (TODAY, DAILY),
            (TODAY, BEGUN),
            (TOMORROW, EpochReleased(TODAY, (1,))),
            (TOMORROW, EpochReleased(TODAY, (1,))),
        ],
        "was released twice",
    ),
    "released in part": (
        [
            (TODAY, WATCHED),
            (TODAY, EpochBegun("all", 0, 3 * UNITS)),
            (TODAY, EpochReleased("all", (1, 2))),
        ],
        "for each predicate",
    ),
    "too cheap for its predicates": (
        [(TODAY, WATCHED), (TODAY, EpochBegun("all", 0, UNITS))],
        "is not the loss of one epoch",
    ),
    "dropped": ([(TODAY, DAILY), (TODAY, StreamDropped("ann")), (TODAY, BEGUN)], "dropped"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_follow_is_not_written(tmp_path: Path, case: str) -> None:
    bodies, said = REFUSED[case]
    path = tmp_path / "a.ledger"
    written(path, bodies[:-1])
    with pytest.raises(ValueError, match=said):
        written(path, bodies[-1:])


@pytest.mark.parametrize("epochs", Window)
def test_the_auditor_names_epochs_as_the_ledger_does(tmp_path: Path, epochs: Window) -> None:
    path = tmp_path / "a.ledger"
    stream = replace(DAILY, epochs=epochs)
    at = f"{TODAY}T00:00:00.000+00:00"
    begun = EpochBegun(stream.epoch_at(at), 0, UNITS)
    written(path, [(TODAY, stream), (TODAY, begun)])
    with closing(SqliteReader(path)) as reader:
        verdict = verify(reader.entries_after(0))
    assert verdict.problem is None
    assert (verdict.streams[0].n_epochs, verdict.streams[0].epochs) == (1, epochs.value)


def test_a_name_is_that_of_a_table_or_of_a_stream(tmp_path: Path) -> None:
    def served(ledger: Ledger) -> Any:
        return open_table(ledger, SCHEMA, FUNDS, KnownTable(SCHEMA, RECORDS), SystemNoise())

    with open_ledger(tmp_path / "a.ledger") as ledger:
        served(ledger)
        with pytest.raises(ValueError, match="the name of a table"):
            noted(ledger, SCHEMA.table, ENDLESS)
        write_a_stream(ledger)
    with open_ledger(tmp_path / "b.ledger") as ledger:
        noted(ledger, SCHEMA.table, ENDLESS)
        with pytest.raises(ValueError, match="name of a stream"):
            served(ledger)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_places": 1001},
        {"n_places": 0},
        {"p1": 2**63},
        {"alpha": 2**64},
        {"epsilon_units": 0},
        {"epsilon_units": UNITS - 1},
        {"p1": DAILY.p1 + 2**40},
        {"alpha": DAILY.alpha - 2**40},
        {"budget_units": 1},
        {"key": "ab" * 16},
        {"n_places": 500},
        {"universe": 0},
        {"column": ""},
        {"predicates": ("paid",)},
        {"predicates": ("",), "epsilon_units": 2 * UNITS},
        {"predicates": ("paid", "PAID"), "epsilon_units": 3 * UNITS},
        {"predicates": ("User",), "epsilon_units": 2 * UNITS},
        {"predicates": tuple(f"p{k}" for k in range(17)), "epsilon_units": 18 * UNITS},
    ],
)
def test_a_stream_checks_itself(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"stream|key|name"):
        replace(DAILY, **wrong)


def test_a_ledger_that_says_less_than_its_laws_lose_is_refused_at_a_start(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    lying = replace(DAILY)
    object.__setattr__(lying, "epsilon_units", UNITS - 1)  # as whoever forges an entry does
    written(path, [(TODAY, lying)])
    with (
        pytest.raises(LedgerCorrupt, match="lose more than the recorded epsilon"),
        open_ledger(path),
    ):
        pass


def test_what_an_epoch_loses_is_what_its_mechanism_says() -> None:
    for epsilon in (Fraction(1, 1000), Fraction(1, 3), Fraction(2), Fraction(31)):
        both = best_mechanism(epsilon, 1000)
        opened = replace(
            DAILY,
            p1=both.state.threshold,
            alpha=both.output.threshold,
            epsilon_units=both.epsilon_units,
        )
        assert opened.lost_units == both.epsilon_units


def test_nobody_leaves_a_bucket() -> None:
    with pytest.raises(ValueError, match="buckets"):
        replace(HASHED, has_departures=True)


def test_a_start_with_a_checkpoint_knows_streams(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with open_ledger(path) as ledger:
        write_a_stream(ledger)
        expected = ledger.streams
        assert ledger.keep_state()
    with open_ledger(path) as ledger:
        assert ledger._n_kept == ledger.position[0]
        assert ledger.streams == expected


NOON = 43_200  # of a day, two of its four parts are over
PAID = EpochBegun(TODAY, 0, VISITS.epsilon_units)


def test_releases_of_visits_are_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with ledger_on(path, TODAY, NOON) as ledger:
        write_visits(ledger)
        bodies = [json.loads(entry.body) for entry in ledger.entries()]
    assert (bodies[0]["levels"], bodies[0]["n_releases"]) == (5, 4)
    assert bodies[-1] == {"epoch": TODAY, "noisy": list(NOISY), "part": 2}
    with ledger_on(path, TOMORROW) as ledger:
        noted(ledger, "visits", VisitsReleased(TODAY, NOISY[::-1]))
    with open_ledger(path) as ledger:
        history = ledger.streams.streams["visits"]
        assert history.opened == VISITS
        assert dict(history.partial) == {(TODAY, 2): NOISY}
        assert dict(history.released) == {TODAY: NOISY[::-1]}
    with closing(SqliteReader(path)) as reader:
        verdict = verify(reader.entries_after(0))
    assert verdict.problem is None
    assert verdict.streams[0].n_released == 1


UNFIT: dict[str, tuple[list[StreamBody], StreamBody, str]] = {
    "early": ([PAID], VisitsReleased(TODAY, NOISY, 3), "outside its time"),
    "of another day": ([PAID], VisitsReleased(TOMORROW, NOISY, 1), "never begun"),
    "twice": (
        [PAID, VisitsReleased(TODAY, NOISY, 2)],
        VisitsReleased(TODAY, NOISY, 2),
        "released twice",
    ),
    "after a later one": (
        [PAID, VisitsReleased(TODAY, NOISY, 2)],
        VisitsReleased(TODAY, NOISY, 1),
        "after a later one",
    ),
    "short": ([PAID], VisitsReleased(TODAY, NOISY[1:], 1), "one for each level"),
    "last too early": ([PAID], VisitsReleased(TODAY, NOISY), "before its end"),
    "of bits": ([PAID], EpochReleased(TODAY, (1,)), "releases numbers of visits"),
    "not begun": ([], VisitsReleased(TODAY, NOISY, 1), "never begun"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_part_is_released_once_and_in_its_time(tmp_path: Path, case: str) -> None:
    before, body, said = UNFIT[case]
    with ledger_on(tmp_path / "a.ledger", TODAY, NOON) as ledger:
        for one in (VISITS, *before):
            noted(ledger, "visits", one)
        with pytest.raises(ValueError, match=said):
            noted(ledger, "visits", body)


def test_a_stream_of_bits_releases_no_visits(tmp_path: Path) -> None:
    with ledger_on(tmp_path / "a.ledger", TODAY, NOON) as ledger:
        noted(ledger, "visits", DAILY)
        noted(ledger, "visits", BEGUN)
        with pytest.raises(ValueError, match="does not count visits"):
            noted(ledger, "visits", VisitsReleased(TODAY, NOISY, 1))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"levels": 1}, "2 to 100"),
        ({"levels": 101}, "2 to 100"),
        ({"n_releases": 0}, "1 to 24"),
        ({"n_releases": 25}, "1 to 24"),
        ({"n_releases": 5}, "lose more"),
        ({"epochs": Window.NEVER}, "epochs by the clock"),
        ({"levels": 0}, "need counters"),
        ({"has_departures": True}, "without departures"),
        ({"universe": 0, "key": "ab" * 16}, "known universe"),
        ({"alpha": VISITS.alpha - 2**40}, "lose more"),
        ({"alpha": 1}, "more than any epsilon"),
        ({"p1": VISITS.p1 + 2**40}, "lose more"),
    ],
)
def test_a_stream_of_visits_checks_itself(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(VISITS, **changes)


@pytest.mark.parametrize("epochs", [one for one in Window if one is not Window.NEVER])
@pytest.mark.parametrize("at", ["2026-02-14T11:59:59.999", "2026-11-30T18:00:00.000"])
def test_parts_end_when_the_auditor_says(epochs: Window, at: str) -> None:
    opened = replace(VISITS, epochs=epochs)
    moment = f"{at}+00:00"
    read = audited.StreamOpened(VISITS.epsilon_units, epochs.value, None, 0, 5, 4)
    assert audited.StreamBook(1, read)._parts_over(moment) == opened.parts_over(moment)


def test_the_quarters_of_a_day_end_at_their_hours() -> None:
    for hour, over in ((0, 0), (5, 0), (6, 1), (12, 2), (23, 3)):
        assert VISITS.parts_over(f"{TODAY}T{hour:02}:00:00.000+00:00") == over
    assert VISITS.parts_over(f"{TODAY}T05:59:59.999+00:00") == 0
