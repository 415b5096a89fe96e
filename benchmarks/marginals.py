"""All one- and two-way marginals of Adult, measured through the gate and made to agree.

    python -m benchmarks.marginals [--quick]

The tables are bought at one epsilon, each at the weight that makes the summed variance least, and
reconciled by the one-pass projection, with exact standard errors. Beside them stands the least
summed variance that Gaussian residuals could have for the same tables at the same privacy parameter
of Gaussian differential privacy: a figure without a bar, since it needs a delta.
"""

import time
from fractions import Fraction
from itertools import combinations

import numpy as np
from threadpoolctl import threadpool_limits

from accountant.ledger.limits import Payer
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.synthesis_tables import BenchTable, served, tables
from cube.measurement import Weight
from cube.query import Partition, QueryBlock, Scope, counting
from inference.marginals.budget import DeclaredMarginal, laplace_weights, residual_plan
from inference.marginals.projection import disagreement, reconciled, standard_errors
from inference.marginals.table import NoisyTable

EPSILON = Fraction(1)
MU_SQUARED = 0.18197**2  # of Gaussian differential privacy, at epsilon 1 and delta 1e-9
CPU_SECONDS_MAX = 1.0
ERROR_BAND = 0.1  # of a mean squared error over some 500,000 cells, around what it should be
N_QUICK = 20  # of the tables


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick("All one- and two-way marginals of Adult, made to agree.")
    at_hand = tables()
    table = at_hand.get("adult14") or next(iter(at_hand.values()))
    sizes = {axis.name: axis.size for axis in table.schema.axes}
    names = sorted(sizes)
    scopes: list[Scope] = [(name,) for name in names] + list(combinations(names, 2))
    scopes = scopes[:N_QUICK] if quick else scopes
    declared = [DeclaredMarginal(scope) for scope in scopes]
    with threadpool_limits(1):
        started = time.process_time()
        noisy, spent = _measured(table, declared, sizes)
        measured = time.process_time()
        agreed = reconciled(noisy)
        errors = standard_errors(noisy, scopes)
        seconds = time.process_time() - measured
    progress(
        f"{len(scopes)} tables bought for {float(spent):.6f}, made to agree in {seconds:.3f} s"
    )
    real = table.rows()
    places = [[table.place(name) for name in scope] for scope in scopes]
    exact = [
        _counted(real[:, place], one.values.shape) for place, one in zip(places, noisy, strict=True)
    ]
    before = [
        float(((one.values - truth) ** 2).sum()) for one, truth in zip(noisy, exact, strict=True)
    ]
    after = [
        float(((one.values - truth) ** 2).sum())
        for one, truth in zip(agreed.tables, exact, strict=True)
    ]
    foreseen = sum(error**2 * one.values.size for error, one in zip(errors, noisy, strict=True))
    apart = disagreement(noisy, [one.values for one in agreed.tables])
    figures = {
        "n_tables": len(scopes),
        "n_cells": sum(one.values.size for one in noisy),
        "epsilon_spent": float(spent),
        "cpu_seconds_to_measure": measured - started,
        "cpu_seconds_to_reconcile": seconds,
        "summed_squared_error_measured": sum(before),
        "summed_squared_error_reconciled": sum(after),
        "summed_squared_error_foreseen": foreseen,
        "least_summed_variance_of_gaussian_residuals":
            residual_plan(declared, sizes, MU_SQUARED).total_variance,
    }  # fmt: skip
    ratio = sum(after) / foreseen
    run(
        figures,
        [
            Bar("CPU seconds to make all agree", seconds, CPU_SECONDS_MAX,
                seconds <= CPU_SECONDS_MAX),
            Bar("epsilon spent", float(spent), float(EPSILON), spent <= EPSILON),
            Bar("most that two tables disagree by, in counts", apart, 1e-6, apart <= 1e-6),
            Bar("squared error over what standard errors say", ratio, 1 + ERROR_BAND,
                abs(ratio - 1) <= ERROR_BAND),
            Bar("squared error over that of tables as measured", sum(after) / sum(before), 1.0,
                sum(after) < sum(before)),
        ],
    )  # fmt: skip


def _measured(
    table: BenchTable, declared: list[DeclaredMarginal], sizes: dict[str, int]
) -> tuple[list[NoisyTable], Fraction]:
    """The tables as they come from the gate, and what they cost."""
    weights = laplace_weights(declared, sizes, EPSILON)
    shapes = [[sizes[name] for name in one.scope] for one in declared]
    cells = [
        Partition(one.scope, np.arange(np.prod(shape)).reshape(shape))
        for one, shape in zip(declared, shapes, strict=True)
    ]
    added: dict[Partition | None, Weight] = {
        one: weight for one, weight in zip(cells, weights, strict=True) if weight is not None
    }
    with served(table) as private:
        spent = private.buy_tables(added, Payer("benchmark"), epsilon_cap=EPSILON)
        history = private.history
        places = [history.most_precise(QueryBlock(counting(), one)) for one in cells]
        bought = [history[place] for place in places if place is not None]
    return [
        NoisyTable(one.scope, found.values.reshape(shape), 2 * found.noise_scale**2)
        for one, found, shape in zip(declared, bought, shapes, strict=True)
    ], spent


def _counted(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros(shape)
    np.add.at(counts, tuple(rows.T), 1.0)
    return counts


if __name__ == "__main__":
    main()
