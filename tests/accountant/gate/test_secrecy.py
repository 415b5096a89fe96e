"""Secrets: exact counts and noise are in no file, repr or failure, and influence no decision."""

import gc
import types
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.gate.gate import CellCounts, Source
from accountant.gate.opening import open_table
from accountant.grouping import Grouping
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from accountant.source import UnitCells
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import QueryBlock
from cube.refusals import Refused, SourceUnavailable
from cube.schema import Schema
from cube.statistic import Distance
from tests.support.fakes import BrokenNoise, FailingSource, KnownTable, PlantedNoise
from tests.support.gaussian import TERMS, with_gaussian_noise
from tests.support.groupings import each
from tests.support.seven_people import (
    ADULTS,
    AGE,
    BUDGET,
    BY_SEX,
    EVERYONE,
    RECORDS,
    SCHEMA,
    SEX,
    buy,
    plan,
)

CANARY = 31_415_926_535
PLANTED = 2_718_281_828_459
CANARY_SCHEMA = Schema(table="people", axes=(AGE, SEX), n_records_max=2**36)
FROM_NOTHING = Distance(EVERYONE, (0,))
THIN = PlannedMeasurement(EVERYONE, Weight(1))  # noise of 2**40: long enough to be recognised


class CanarySource:
    """A `Source` with one recognisable count in one cell, made afresh at every read."""

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return f"the same for every key of {len(key)} bytes"

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return f"the same rows for every key of {len(key)} bytes"

    def measure(self, grouping: Grouping) -> CellCounts:
        levels = tuple(np.array([1], dtype=np.int64) for _ in grouping.scope)
        return CellCounts(levels, np.array([CANARY], dtype=np.int64))

    def measure_units(self, grouping: Grouping) -> UnitCells:
        one = np.array([1], dtype=np.int64)
        return UnitCells(tuple(one for _ in grouping.scope), CANARY * one, one, one, one)


def traces(secret: int) -> list[bytes]:
    length = (secret.bit_length() + 7) // 8
    return [
        str(abs(secret)).encode(),
        abs(secret).to_bytes(length, "little"),
        abs(secret).to_bytes(length, "big"),
    ]


def shows_canary(text: bytes) -> bool:
    return any(trace in text for trace in traces(CANARY))


def frames_of(error: BaseException) -> Iterator[types.FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def test_the_search_for_the_canary_has_teeth() -> None:
    counts = CanarySource().measure(each(CANARY_SCHEMA))
    assert shows_canary(counts.counts.tobytes())
    assert shows_canary(str(counts.counts.tolist()).encode())
    assert not shows_canary(repr(counts).encode())


def test_an_exact_count_is_in_no_file_and_no_repr(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, CANARY_SCHEMA, BUDGET, CanarySource(), SystemNoise())
        bought = gate.measure(plan(EVERYONE, BY_SEX), Payer("ann"), epsilon_cap=None)
        for raised_from, units in ((None, 2**90), (2, 2**91)):
            row = PlannedMeasurement(EVERYONE, Precision(units), raised_from, TERMS)
            bought += gate.measure([row], Payer("ann"), epsilon_cap=None)
        asked = gate.charge(
            [],
            Payer("ann"),
            epsilon_cap=None,
            statistics=with_gaussian_noise(EVERYONE, FROM_NOTHING),
        )
        assert gate.complete(asked.seq) == ()
        assert len(gate.history.released) == 1
        shown = [*map(repr, bought), repr(gate), repr(vars(gate)), repr(ledger._replay)]
        shown.extend(map(repr, gate.history.released))
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"people.ledger", "people.ledger-wal", "people.ledger.key"} <= files.keys()
    assert not any(map(shows_canary, files.values()))
    assert not any(shows_canary(path.read_bytes()) for path in tmp_path.iterdir())
    assert not any(shows_canary(text.encode()) for text in (*shown, caplog.text))
    gc.collect()
    kept = [found for found in gc.get_objects() if isinstance(found, CellCounts)]
    assert not any(shows_canary(counts.counts.tobytes()) for counts in kept)


@pytest.mark.parametrize(
    ("source", "noise", "raised"),
    [
        (FailingSource(CanarySource(), 9, "canary"), SystemNoise(), SourceUnavailable),
        (CanarySource(), BrokenNoise(), RuntimeError),
    ],
)
def test_no_failure_carries_an_exact_count(
    ledger: Ledger, source: Source, noise: SystemNoise, raised: type[Exception]
) -> None:
    """Neither in its text, nor in what it hangs on to: causes, contexts, locals of frames."""
    gate = open_table(ledger, CANARY_SCHEMA, BUDGET, source, noise)
    with pytest.raises(raised) as failed:
        gate.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=None)
    error: BaseException = failed.value
    assert error.__cause__ is None
    assert error.__context__ is None
    frames = list(frames_of(error))
    names = {frame.f_code.co_name for frame in frames}
    assert "measure" in names
    assert not names & {"_read_and_add_noise", "exact_answers", "discrete_laplace"}
    for frame in frames:
        for value in frame.f_locals.values():
            assert not isinstance(value, CellCounts)
            assert not shows_canary(repr(value).encode())
    assert gate.budget().spent == Fraction(1, 4)


@pytest.mark.parametrize(
    ("source", "noise", "raised"),
    [
        (FailingSource(CanarySource(), 9, "canary"), SystemNoise(), SourceUnavailable),
        (CanarySource(), BrokenNoise(), RuntimeError),
    ],
)
@pytest.mark.parametrize("is_of_rows", [True, False])
def test_no_failure_of_gaussian_noise_carries_an_exact_count(
    ledger: Ledger,
    source: Source,
    noise: SystemNoise,
    raised: type[Exception],
    *,
    is_of_rows: bool,
) -> None:
    gate = open_table(ledger, CANARY_SCHEMA, BUDGET, source, noise)
    rows = [PlannedMeasurement(EVERYONE, Precision(2**90), terms=TERMS)] * is_of_rows
    asked = [] if is_of_rows else with_gaussian_noise(EVERYONE, FROM_NOTHING)
    payment = gate.charge(rows, Payer("ann"), epsilon_cap=None, statistics=asked)
    with pytest.raises(raised) as failed:
        gate.complete(payment.seq)
    error: BaseException = failed.value
    assert error.__cause__ is None
    assert error.__context__ is None
    names = {frame.f_code.co_name for frame in frames_of(error)}
    assert "noisy_values" in names
    assert not names & {"_read_and_add_noise", "exact_answers", "discrete_gaussian"}
    for frame in frames_of(error):
        assert not any(shows_canary(repr(value).encode()) for value in frame.f_locals.values())
    assert gate.budget().spent == Fraction(payment.units, UNITS_PER_EPSILON)


def test_the_noise_of_a_raised_row_is_in_no_file_and_no_repr(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the noise that was found again nor what it was refined to.

    The latter is short enough to be met by accident once in some million runs.
    """
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, CANARY_SCHEMA, Fraction(1), CanarySource(), PlantedNoise(PLANTED))
        buy(gate, THIN)
        buy(gate, PlannedMeasurement(EVERYONE, Weight(2), raised_from=0))
        earlier, raised = gate.measurements()
        texts = [repr(earlier), repr(raised), repr(gate), repr(vars(gate)), repr(ledger._replay)]
        texts.append(caplog.text)
        during = [path.read_bytes() for path in tmp_path.iterdir()]
    shown = [*during, *(path.read_bytes() for path in tmp_path.iterdir())]
    shown.extend(text.encode() for text in texts)
    exact = CANARY << earlier.lattice_bits
    assert earlier.lattice_values == (exact + PLANTED,)
    assert any(str(exact + PLANTED).encode() in text for text in shown), "the search has teeth"
    for secret in (CANARY, exact, PLANTED, raised.lattice_values[0] - exact):
        assert not any(trace in text for trace in traces(secret) for text in shown)


def test_a_raise_that_fails_shows_no_noise(ledger: Ledger) -> None:
    """`BrokenNoise` says in its error what it was to refine."""
    opened = CANARY_SCHEMA, Fraction(1), CanarySource()
    buy(open_table(ledger, *opened, PlantedNoise(PLANTED)), THIN)
    gate = open_table(ledger, *opened, BrokenNoise())
    with pytest.raises(RuntimeError, match="stays pending") as failed:
        buy(gate, PlannedMeasurement(EVERYONE, Weight(2), raised_from=0))
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    names = set()
    for frame in frames_of(failed.value):
        names.add(frame.f_code.co_name)
        if frame.f_code.co_filename != __file__:
            assert not any(str(PLANTED) in repr(value) for value in frame.f_locals.values())
    assert "noisy_values" in names
    assert not names & {"_read_and_add_noise", "refined_laplace", "found_in"}
    assert gate.budget().spent == Fraction(2, UNITS_PER_EPSILON)
    assert [found.supersedes for found in gate.measurements()] == [None]
    again = open_table(ledger, *opened, SystemNoise())
    assert [found.supersedes for found in again.measurements()] == [None, 0]


requests = st.lists(
    st.tuples(
        st.sampled_from([EVERYONE, ADULTS, BY_SEX]),
        st.one_of(st.integers(1, 2**39).map(Weight), st.integers(1, 2**94).map(Precision)),
        st.one_of(st.none(), st.fractions(0, 1)),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(requests, st.integers(0, len(RECORDS) - 1))
def test_decisions_are_the_same_on_neighbouring_tables(
    tmp_path_factory: pytest.TempPathFactory,
    asked: list[tuple[QueryBlock, Weight | Precision, Fraction | None]],
    without: int,
) -> None:
    """Prices, refusals, what is read and what is charged: all decided without the data."""
    decided = []
    for records in (RECORDS, np.delete(RECORDS, without, axis=0)):
        table = KnownTable(SCHEMA, records)
        seen: list[object] = []
        with open_ledger(tmp_path_factory.mktemp("neighbour") / "ledger") as ledger:
            gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
            for block, weight, epsilon_cap in asked:
                terms = TERMS if isinstance(weight, Precision) else None
                wanted = [PlannedMeasurement(block, weight, terms=terms)]
                seen.append(gate.price(wanted))
                try:
                    bought = gate.measure(wanted, Payer("ann"), epsilon_cap=epsilon_cap)
                    seen.append(len(bought))
                except Refused as refused:
                    seen.append((refused.code, refused.explain()))
                seen.append((gate.budget(), list(table.scopes_read)))
        decided.append(seen)
    assert decided[0] == decided[1]
