"""Makes the counts of a part's grouping sets agree after they are answered.

This is post-processing: the sets are already answered to their targets, and nothing more is bought.
Estimates may rest on the same measurements; the reconciliation weighs them as if they were
independent, which is still unbiased, and the law of each error is computed from the measurements'
own noise, so that intervals account for shared noise: they are exact, or slightly wide where one
estimate rests on a measurement and another on its refinement.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inference.error_terms import Places
from inference.joint import error_parts
from inference.marginals.error_law import UnknownLaw, cell_coefficients
from inference.marginals.joint import reconciled_globally
from inference.marginals.projection import projected
from inference.marginals.table import Floats, NoisyTable
from inference.noise_law.law import law_of_noises
from inference.posterior import Posterior
from planner.workload import Consistency, ConsistentSets
from proxy.engine.results import AnsweredPart
from proxy.marginals.reconcile import least_negative


def consistent(answered: AnsweredPart) -> AnsweredPart:
    """The part with counts that agree, if the statement asks for that."""
    sets = answered.part.consistency
    if sets is None:
        return answered
    (counts,) = answered.aggregates
    tables = _tables(sets, counts.posteriors)
    if sets.consistency is Consistency.EXACT:
        posteriors = _exact(sets, tables, counts.posteriors, answered.history)
    else:
        made = (
            reconciled_globally(tables)
            if sets.consistency is Consistency.GLOBAL
            else least_negative(tables, None)
        )
        values = _in_rows(sets, [table.values for table in made.tables])
        posteriors = tuple(
            Posterior(value, UnknownLaw(), low=one.low, high=one.high)
            for value, one in zip(values.tolist(), counts.posteriors, strict=True)
        )
    return replace(answered, aggregates=(replace(counts, posteriors=posteriors),))


def _tables(sets: ConsistentSets, posteriors: Sequence[Posterior]) -> list[NoisyTable]:
    """The sets as tables over the keys' positions, with the mean variance of their cells."""
    values = np.array([one.value for one in posteriors])
    variances = np.array([one.standard_deviation**2 for one in posteriors])
    tables, start = [], 0
    for keys in sets.sets:
        shape = [sets.sizes[place] for place in keys]
        own = slice(start, start + int(np.prod(shape)))
        start = own.stop
        cells = np.transpose(values[own].reshape(shape), np.argsort(keys))
        scope = tuple(sorted(_name(place) for place in keys))
        tables.append(NoisyTable(scope, cells, float(variances[own].mean())))
    return tables


def _name(place: int) -> str:
    """The name of a key as an axis; names sort as positions do."""
    return f"{place:04d}"


def _in_rows(sets: ConsistentSets, tables: Sequence[Floats]) -> Floats:
    """The cells of all tables in the order of the part's rows."""
    rows = [
        np.transpose(cells, np.argsort(np.argsort(keys))).ravel()
        for keys, cells in zip(sets.sets, tables, strict=True)
    ]
    return np.concatenate(rows)


def _exact(
    sets: ConsistentSets,
    tables: Sequence[NoisyTable],
    posteriors: Sequence[Posterior],
    history: Places,
) -> tuple[Posterior, ...]:
    """The projection, each cell with the law of the noises that it combines."""
    noises, scales, is_gaussian = error_parts(posteriors, history)
    widenings = np.array([one.lattice_widening for one in posteriors])
    values = _in_rows(sets, projected(tables))
    found: list[Posterior] = []
    for holder, (keys, table) in enumerate(zip(sets.sets, tables, strict=True)):
        shape = [sets.sizes[place] for place in keys]
        for cell in range(table.values.size):
            summed = np.zeros(table.values.size)
            summed[cell] = 1.0
            probe = np.transpose(summed.reshape(shape), np.argsort(keys))
            shares = _in_rows(sets, cell_coefficients(tables, holder, probe))
            own = posteriors[len(found)]
            law = law_of_noises(np.abs(shares @ noises) * scales, is_gaussian)
            widening = float(np.abs(shares) @ widenings)
            found.append(Posterior(float(values[len(found)]), law, widening, own.low, own.high))
    return tuple(found)
