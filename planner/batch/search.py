"""Where to start, and how far to search, for the cheapest weights of a batch's candidate rows.

First every hierarchy together with the atoms, with one weight for each of its levels, which is
quick at any size. Then, if the batch is small enough, one weight for every row, starting from
several of those results. The best of all is tidied, so that it is bought in few blocks.

Deterministic: the same batch gives the same plan.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from cube.refusals import TooSlow
from planner.batch.candidate_rows import BRANCHINGS, CandidateRows
from planner.batch.weights import N_ROUNDS_MAX, Solution, WeightProblem, improved, scaled_to_meet

N_ENTRIES_SMALL = 15_000  # candidates times queries: up to here every start is followed
N_ENTRIES_LARGE = 60_000  # beyond this, each level of a hierarchy has one weight
N_ENTRIES_HUGE = 400_000  # beyond this, hierarchies are compared but not improved
NOTHING_TO_GAIN = 1e-4  # relative to a lower bound on the cost
ROUGHLY = 0.02  # a gain too small to change which hierarchies are worth following
N_ROUNDS_BEGUN = 3  # rounds after which the most promising starts are known
N_FOLLOWED = 2
TIDYING = 1.002  # the factor by which a plan of fewer blocks may cost more
ROUNDINGS = (1.03, 1.01)  # ratios of the geometric ladders that weights are rounded to
LIGHT = (1e-2, 1e-3)  # relative to the largest weight; dropping lighter rows is tried

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


def cheapest(problem: WeightProblem, candidates: CandidateRows) -> Solution | None:
    """The cheapest solution found; None if the candidates do not determine every query.

    It never costs more than the atoms at one common weight, or than the queries each bought alone.
    When time runs out, it is the cheapest found by then.
    """
    simple = [
        found
        for start in _simple(problem, candidates)
        if (found := scaled_to_meet(problem, start)) is not None
    ]
    least = _least_cost(problem)
    if simple and min(found.cost for found in simple) <= least * (1 + NOTHING_TO_GAIN):
        return _best(simple)
    known, further = list(simple), list[Solution]()
    with suppress(TooSlow):
        for solution in _coarse(problem, candidates):
            known.append(solution)  # noqa: PERF402 - keeps what was found before time runs out
        for solution in _fine(problem, candidates, known):
            further.append(solution)
        return _tidied(problem, _best([*known, *further]), _best(known).cost) if known else None
    return _best([*known, *further]) if known else None


def _best(solutions: Sequence[Solution]) -> Solution:
    return min(solutions, key=lambda solution: solution.cost)


def _fine(
    problem: WeightProblem, candidates: CandidateRows, known: Sequence[Solution]
) -> Iterator[Solution]:
    """What becomes of several starts with a weight for every row, the best of them followed."""
    if not known:
        return
    in_order = sorted(known, key=lambda solution: solution.cost)
    begun: list[Solution] = []
    for start in _fine_starts(problem, candidates, in_order):
        solution = improved(problem, start, n_rounds=N_ROUNDS_BEGUN)
        if solution is not None:
            begun.append(solution)
            yield solution
    begun.sort(key=lambda solution: solution.cost)
    for one in begun[:N_FOLLOWED]:
        solution = improved(problem, one.weights, n_rounds=N_ROUNDS_MAX)
        if solution is not None:
            yield solution


def _least_cost(problem: WeightProblem) -> float:
    """A lower bound on any plan's cost: the dearest query bought alone, or what is paid already.

    An estimate with scales ``b`` of a query ``q`` from rows ``H`` of weights ``w`` has
    ``|q_j| <= sum_k b_k w_k |H_kj| <= max(b) * cost``, and is noisier than one Laplace variable of
    scale ``max(b)``; so ``cost >= max|q| log(1 / (1 - confidence)) / half_width``.
    """
    alone = -np.log1p(-problem.confidences) / problem.half_widths
    dearest = float((alone * np.abs(problem.queries).max(axis=1)).max())
    return max(dearest, float(problem.paid.max()))


def _simple(problem: WeightProblem, candidates: CandidateRows) -> Iterator[Floats]:
    """The history raised; the atoms at one weight; each query at the weight it needs alone."""
    if problem.bought.any():
        yield 2.0 * problem.bought
    cells = candidates.of_kind("cells")
    if cells.any():
        yield cells.astype(np.float64)
    alone = -np.log1p(-problem.confidences) / problem.half_widths
    weights = np.zeros(len(candidates.rows))
    for query, weight in zip(problem.queries, alone, strict=True):
        same = (candidates.rows == query).all(axis=1) & (problem.bought == 0)
        weights[np.flatnonzero(same)[:1]] = np.maximum(weights[np.flatnonzero(same)[:1]], weight)
    yield weights


def _coarse(problem: WeightProblem, candidates: CandidateRows) -> Iterator[Solution]:
    """The best common weights of the levels of each hierarchy."""
    tied = problem.tied(candidates.families)
    history, cells = candidates.of_kind("history"), candidates.of_kind("cells")
    n_queries = problem.queries.shape[0]
    for branching in BRANCHINGS:
        nodes = candidates.of_families([("nodes", branching)])
        if not nodes.any():
            continue
        used = history | cells | nodes
        start = np.where(cells | nodes, 1.0, 0.0)
        is_huge = int(used.sum()) * n_queries > N_ENTRIES_HUGE
        found = scaled_to_meet(tied, start) if is_huge else _improved_on(tied, used, start)
        if found is not None:
            yield found


def _improved_on(problem: WeightProblem, used: Mask, start: Floats) -> Solution | None:
    """Improve on the used rows only."""
    found = improved(problem.on(used), start[used], settled=ROUGHLY)
    if found is None:
        return None
    weights = np.zeros(used.size)
    weights[used] = found.weights
    return Solution(weights, found.half_widths, found.cost)


def _fine_starts(
    problem: WeightProblem, candidates: CandidateRows, known: list[Solution]
) -> list[Floats]:
    """Where to begin with a weight for every row."""
    k, m = len(candidates.rows), problem.queries.shape[0]
    best = known[0].weights
    if k * m > N_ENTRIES_SMALL:
        used = int((best > 0).sum())
        return [best] if used * m <= N_ENTRIES_LARGE else []
    cells = candidates.of_kind("cells")
    sizes = np.abs(candidates.rows).sum(axis=1)
    flat = np.ones(k)
    mixed = [np.where(found.weights > 0, found.weights, 0.1 * best.max()) for found in known[:3]]
    return [*mixed, flat, np.where(cells, 1.0, 0.3), 1.0 / np.sqrt(sizes)]


def _tidied(problem: WeightProblem, best: Solution, cost_max: float) -> Solution:
    """About the same weights, on fewer rows and with fewer distinct values."""
    cost_max = min(best.cost * TIDYING, max(cost_max, best.cost))
    for share in LIGHT:
        light = (best.weights < share * best.weights.max()) & (problem.bought == 0)
        found = scaled_to_meet(problem, np.where(light, 0.0, best.weights))
        if found is not None and found.cost <= cost_max:
            best = found
            break
    for ratio in ROUNDINGS:
        found = scaled_to_meet(problem, _on_ladder(best.weights, ratio))
        if found is not None and found.cost <= cost_max:
            return found
    return best


def _on_ladder(weights: Floats, ratio: float) -> Floats:
    rounded = np.zeros_like(weights)
    used = weights > 0
    top = weights.max()
    rounded[used] = top * ratio ** np.round(np.log(weights[used] / top) / np.log(ratio))
    return rounded
