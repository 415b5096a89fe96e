"""Measures a charge: makes the only read of private data, and adds the noise.

The gate calls it, once in a turn, for what is durably charged (gate.py). Exact values and recovered
noise are locals of `_read_and_add_noise` and of the functions that it calls, and of nothing else;
on a failure they are dropped before anything is raised.

Proof: proofs/gate.md, "Where exact values live".
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from accountant.exact import (
    answer_bound,
    chosen,
    exact_distance,
    exact_of_units,
    grouping_for,
    groupings_for,
    statistic_bound,
)
from accountant.exact.exact_answers import exact_answers
from accountant.grouping import Grouping
from accountant.ledger import (
    Charge,
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
)
from accountant.ledger.history import TableHistory
from accountant.noise import GaussianNoise, LatticeNoise, NoiseSource
from accountant.source import CellCounts, ReadRows, Source, UnitCells
from cube.measurement import Measurement
from cube.query import QueryBlock
from cube.refusals import SourceUnavailable
from cube.schema import Schema
from cube.statistic import Distance, GaussianStatistic

# The values of each block in lattice steps, and the numbers of the statistics.
Noisy: TypeAlias = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]


class _NotReadError(Exception):
    """The source could not be read. It carries nothing else, and never leaves this module."""


@dataclass(frozen=True, slots=True)
class Release:
    """Reads one table's data for a charge, and adds the noise that was charged for."""

    schema: Schema
    noise: NoiseSource

    def noisy_values(self, source: Source | ReadRows, charge: Charge, known: TableHistory) -> Noisy:
        """The noisy values of a charge.

        Parameters
        ----------
        source : Source or ReadRows
            The rows that were checked, of a table that grows.
        charge : Charge
            The charge to measure, already durable.
        known : TableHistory
            Whose measurements, and counts of units, the charge may raise.

        Raises
        ------
        SourceUnavailable
            If the data could not be read.
        RuntimeError
            If anything else failed. No traceback of either reaches an exact value.
        """
        values: Noisy | None = None
        is_broken = True
        with suppress(Exception):
            values = self._read_and_add_noise(source, charge, known)
            is_broken = False
        if is_broken:
            raise RuntimeError("a measurement failed after its charge, which stays pending")
        if values is None:
            raise SourceUnavailable(
                f"The data of {self.schema.table} cannot be read at the moment.",
                hint="Ask again later. A charge that was already made is then completed, "
                "not made a second time.",
            )
        return values

    def _read_and_add_noise(
        self, source: Source | ReadRows, charge: Charge, known: TableHistory
    ) -> Noisy | None:
        """The noisy values of a charge; None if the source could not be read."""
        try:
            blocks = [one.block for one in charge.blocks]
            exact = self._answers(source, blocks)
            released = tuple(
                number
                for one in charge.statistics
                for number in self._released_of(source, one, known)
            )
        except _NotReadError:
            return None
        values = (
            self._noisy(one, answers, known.measurements)
            for one, answers in zip(charge.blocks, exact, strict=True)
        )
        return tuple(values), released

    def _answers(self, source: Source | ReadRows, blocks: Sequence[QueryBlock]) -> list[list[int]]:
        """The exact answers of each of some blocks; those of one scope are read together."""
        answers: list[list[int]] = [[] for _ in blocks]
        for grouping, places in groupings_for(blocks, self.schema):
            counts = _read(source, grouping)
            for place in places:
                answers[place] = exact_answers(blocks[place], counts, self.schema)
        return answers

    def _noisy(
        self, charged: ChargedBlock, exact: Sequence[int], known: Sequence[Measurement]
    ) -> tuple[int, ...]:
        """The noisy values of exact ones in lattice steps, newly drawn or refined."""
        noise = charged.noise
        if isinstance(noise, GaussianNoise):
            drawn = self.noise.discrete_gaussian(noise, len(exact))
        elif charged.raised_from is None:
            drawn = self.noise.discrete_laplace(noise, len(exact))
        else:
            earlier = known[charged.raised_from]
            found = LatticeNoise.of(earlier).found_in(earlier.lattice_values, exact)
            drawn = self.noise.refined_laplace(LatticeNoise.of(earlier), noise, found)
        return noise.on_lattice(exact, drawn, answer_bound(charged.block, self.schema))

    def _released_of(
        self, source: Source | ReadRows, charged: ChargedStatistic, known: TableHistory
    ) -> tuple[int, ...]:
        """The released numbers of a statistic."""
        match charged:
            case ChargedUnitCount(count):
                reach = count.reach(known.unit_counts.rows_per_unit)
                units = _read_units(source, grouping_for([count.block], self.schema))
                exact = exact_of_units(count, reach, units, self.schema)
                return self._noisy(charged.rows, exact, known.unit_counts.measurements)
            case ChargedChoice(choice, weight):
                return (chosen(choice, weight, partial(_read, source), self.schema),)
            case ChargedDistance(statistic, noise):
                exact = self._exact(source, statistic)
                drawn = self.noise.discrete_laplace(noise, len(exact))
                return noise.on_lattice(exact, drawn, statistic_bound(statistic, self.schema))
            case ChargedGaussian(statistic, noise):
                exact = self._exact(source, statistic)
                drawn = self.noise.discrete_gaussian(noise, len(exact))
                return noise.on_lattice(exact, drawn, statistic_bound(statistic, self.schema))

    def _exact(self, source: Source | ReadRows, statistic: GaussianStatistic) -> list[int]:
        """The exact numbers to which noise is added."""
        counts = _read(source, grouping_for([statistic.block], self.schema))
        if isinstance(statistic, Distance):
            return [exact_distance(statistic, counts, self.schema)]
        return exact_answers(statistic.block, counts, self.schema)


def _read_units(source: Source | ReadRows, grouping: Grouping) -> UnitCells:
    """The cells of a scope in which each unit has rows."""
    try:
        return source.measure_units(grouping)
    except Exception:  # noqa: BLE001 - as `_read`
        raise _NotReadError from None


def _read(source: Source | ReadRows, grouping: Grouping) -> CellCounts:
    """The exact counts of the cells of a scope."""
    try:
        return source.measure(grouping)
    except Exception:  # noqa: BLE001 - a source may fail in any way, and none may be shown
        raise _NotReadError from None
