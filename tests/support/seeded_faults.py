"""Faults of the kinds that privacy libraries had, one in each stage of a measurement.

Each is put into the product as it runs, and record and replay (recorded.py) has to name its stage:
what is not convicted of these would not be seen if it were ours.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from accountant.cost import history_cost
from accountant.exact import choices as exponential_mechanism
from accountant.exact import unit_counts
from accountant.gate import release
from accountant.gate.release import Release
from accountant.noise.lattice_noise import LatticeNoise
from accountant.source import CellCounts
from cube.measurement import Weight
from proxy.sources import bounding
from proxy.sources import reading as loading
from proxy.sources.duckdb_source import DuckDbSource
from tests.support.recorded_worlds import SYNTHETIC, World

BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
OF_UNITS = "SELECT city, COUNT(DISTINCT person) AS n FROM people GROUP BY city"
ONE_ROW = World("one row", 'unit = "person"\nbudget = 400', (BY_CITY,))
RAISES = replace(
    ONE_ROW,
    statements=(
        "SELECT COUNT(*) AS n FROM people",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 9) COUNT(*) AS n FROM people",
    ),
)
WITHOUT_UNIT = replace(ONE_ROW, declared="budget = 400")
SEVERAL = World(
    "several", 'unit = "person"\nrows_per_unit_max = 2\nbudget = 400', (BY_CITY, OF_UNITS), 6
)
IN_TWO = World(
    "in two",
    'unit = "person"\nrows_per_unit_max = 6\ngroups_per_unit_max = 1\nbudget = 400',
    (OF_UNITS,),
    6,
)
CHOOSES = World("chooses", ONE_ROW.declared, SYNTHETIC[1:2])


@dataclass(frozen=True)
class Fault:
    """A fault, where it has to be found, and what shows it.

    Parameters
    ----------
    name : str
        What is wrong, in words.
    stages : tuple of str
        The stages that may be named.
    world : World
    put_in : callable
        A context in which the product has the fault.
    n_units : int
        Of the tables that show it; few, so that groups are empty, where nothing else is said.
    """

    name: str
    stages: tuple[str, ...]
    world: World
    put_in: Callable[[], AbstractContextManager[Any]]
    n_units: int = 12


def _instead(owner: Any, name: str, faulty: Callable[[Any], Any]) -> AbstractContextManager[Any]:
    """The context in which `name` is what `faulty` makes of the right one."""
    return mock.patch.object(owner, name, faulty(getattr(owner, name)))


def _read_twice() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        def encoded(*given: Any) -> str:
            rows = right(*given)
            return f"SELECT * FROM ({rows}) UNION ALL SELECT * FROM ({rows})"  # noqa: S608 - a fault

        return encoded

    return _instead(loading, "encoded_sql", faulty)


def _levels_of_all_rows() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        level = "(axis_0::INTEGER + (SELECT count(*) FROM rows)) % 4 AS axis_0"
        return lambda *given: f"WITH rows AS ({right(*given)}) SELECT * REPLACE ({level}) FROM rows"  # noqa: S608

    return _instead(loading, "encoded_sql", faulty)


def _one_more_row() -> AbstractContextManager[Any]:
    return _instead(bounding, "_first", lambda right: lambda n, *rest: right(n + 1, *rest))


def _kept_by_place_in_file() -> AbstractContextManager[Any]:
    """Every other row of the whole file goes first, so that a unit moves what others keep."""

    def faulty(right: Any) -> Any:
        def first(n_rows: int, keys: str, _order: str, rows: str) -> str:
            numbered = f"SELECT *, row_number() OVER () % 2 AS place FROM ({rows})"  # noqa: S608 - a fault
            text: str = right(n_rows, keys, "place, digest, axis_0", numbered)
            return text

        return first

    return _instead(bounding, "_first", faulty)


def _counts_doubled() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        def measure(*given: Any) -> CellCounts:
            found: CellCounts = right(*given)
            return replace(found, counts=found.counts * 2)

        return measure

    return _instead(DuckDbSource, "measure", faulty)


def _answers_tripled() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        return lambda *given: [3 * answer for answer in right(*given)]

    return _instead(release, "exact_answers", faulty)


def _every_group_counts() -> AbstractContextManager[Any]:
    def faulty(_right: Any) -> Any:
        return lambda units, *_rest: np.ones(units.size, dtype=np.bool_)

    return _instead(unit_counts, "_is_kept", faulty)


def _no_noise_where_nothing_is() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        def noisy(self: Release, charged: Any, exact: Any, known: Any) -> Any:
            values = right(self, charged, exact, known)
            return tuple(
                value if answer else 0 for value, answer in zip(values, exact, strict=True)
            )

        return noisy

    return _instead(Release, "_noisy", faulty)


def _noise_half_as_wide() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        def noisy(self: Release, charged: Any, exact: Any, known: Any) -> Any:
            narrower = LatticeNoise.for_weight(Weight(2 * charged.noise.weight.units))
            return right(self, replace(charged, noise=narrower), exact, known)

        return noisy

    return _instead(Release, "_noisy", faulty)


def _noise_drawn_again() -> AbstractContextManager[Any]:
    """The sum of an answer is raised by a draw of its own: with the first, it costs both."""

    def faulty(right: Any) -> Any:
        def noisy(self: Release, charged: Any, exact: Any, known: Any) -> Any:
            return right(self, replace(charged, raised_from=None), exact, known)

        return noisy

    return _instead(Release, "_noisy", faulty)


def _sensitivity_of_less() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        return lambda *given: max(1, right(*given) // 10**6)

    return _instead(exponential_mechanism, "sensitivity", faulty)


def _priced_as_a_row() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        return lambda *given, **named: right(*given, **{**named, "rows_per_unit": 1})

    stack = ExitStack()
    stack.enter_context(_instead(history_cost, "row_cost", faulty))
    stack.enter_context(_instead(history_cost, "most_of", faulty))
    return stack


def _refuses_by_what_it_reads() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        def measure(*given: Any) -> CellCounts:
            found: CellCounts = right(*given)
            if int(found.counts.sum()) % 2:
                raise OSError
            return found

        return measure

    return _instead(DuckDbSource, "measure", faulty)


def _ledger_of_counts() -> AbstractContextManager[Any]:
    def faulty(right: Any) -> Any:
        def noisy(self: Release, charged: Any, exact: Any, known: Any) -> Any:
            return (*right(self, charged, exact, known)[:-1], exact[-1])

        return noisy

    return _instead(Release, "_noisy", faulty)


FAULTS = (
    Fault("a row is read twice", ("rows",), WITHOUT_UNIT, _read_twice),
    Fault("levels depend on other rows", ("rows",), ONE_ROW, _levels_of_all_rows),
    Fault("a row more is kept of each unit", ("rows", "units"), SEVERAL, _one_more_row),
    Fault("a unit moves what others keep", ("rows", "units"), SEVERAL, _kept_by_place_in_file),
    Fault("counts are doubled", ("rows",), ONE_ROW, _counts_doubled),
    Fault("answers are tripled", ("charge",), ONE_ROW, _answers_tripled),
    Fault("a unit counts in every group", ("charge",), IN_TWO, _every_group_counts),
    Fault("empty groups get no noise", ("noise",), ONE_ROW, _no_noise_where_nothing_is),
    Fault("noise is half as wide", ("noise",), ONE_ROW, _noise_half_as_wide),
    Fault(
        "a raise draws anew",
        ("noise",),
        RAISES,
        _noise_drawn_again,
    ),
    Fault("a score's sensitivity is too small", ("choice",), CHOOSES, _sensitivity_of_less, 60),
    Fault("a unit is priced as a row", ("charge",), SEVERAL, _priced_as_a_row),
    Fault(
        "what is refused follows from rows",
        ("control flow", "answers"),
        ONE_ROW,
        _refuses_by_what_it_reads,
    ),
    Fault("an exact count is in the ledger", ("answers", "noise"), ONE_ROW, _ledger_of_counts),
)
