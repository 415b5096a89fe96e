"""What a declared batch costs, against buying cells online and against a long search.

    python -m benchmarks.plan_batch [--quick]

Batches of Xiao and Xiong's queries (equations 37 and 38, 64 cells, full interval widths from 20 to
200) and of random ranges (100 to 300), confidence 0.8, one seed each. For every batch, the largest
cost of a cell:

- `alone`: each query bought by itself;
- `online`: the queries come one by one, and where what is known does not suffice, the cells of the
  query's support are raised to a common weight, the smallest sufficient one (refined noise);
- `uniform`: every atom of the batch at one weight, the smallest at which every query is met;
- `planned`: `plan_batch` as shipped, priced by the accountant;
- `searched`: the best of several dozen starts drawn at random, each followed to its end.

The bars: planned at most online and uniform, and at most 1.1 times the best figure of all.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from accountant.cost.history_cost import CostState
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import IntegerAxis
from cube.measurement import UNITS_PER_EPSILON
from cube.query import Factor, LinearQuery, QueryBlock, Term
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.noise_law.law import law_of_noise
from planner.batch.plan import candidate_rows, plan_batch
from planner.batch.weights import WeightProblem, improved, scaled_to_meet
from planner.workload import Wanted

CONFIDENCE = 0.8
N_STARTS = 24
ABOVE_BEST_MAX = 1.1
ROUNDING = 1e-5  # lattice and grid, which the simulations of `online` and `alone` leave out
N_BISECTIONS = 40

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload:
    """A batch's recipe: ``eq38`` or ``range``."""

    kind: str
    n_cells: int
    n_queries: int
    seed: int

    @property
    def name(self) -> str:
        """For the report."""
        return f"{self.kind} n={self.n_cells} T={self.n_queries} seed={self.seed}"


WORKLOADS = (
    Workload("eq38", 64, 25, 1),
    Workload("eq38", 64, 25, 2),
    Workload("eq38", 64, 50, 1),
    Workload("eq38", 64, 50, 2),
    Workload("range", 32, 30, 1),
    Workload("range", 64, 30, 1),
    Workload("range", 64, 30, 2),
)


def drawn(workload: Workload) -> tuple[Floats, Floats]:
    """The queries on cells, (n_queries, n_cells), and their half-widths."""
    rng = np.random.default_rng(workload.seed)
    n_queries, n_cells = workload.n_queries, workload.n_cells
    if workload.kind == "range":
        ends = np.sort(rng.integers(0, n_cells, size=(n_queries, 2)), axis=1)
        place = np.arange(n_cells)
        queries = ((ends[:, :1] <= place) & (place <= ends[:, 1:])).astype(np.float64)
        return queries, rng.uniform(100.0, 300.0, n_queries) / 2
    queries = np.zeros((n_queries, n_cells))
    for query in queries:
        n_trials = int(rng.integers(1, 11))
        decade = rng.geometric(0.9, size=n_trials) - 1
        cells = np.minimum(10 * decade + rng.integers(0, 10, size=n_trials), n_cells - 1)
        np.add.at(query, cells, 1.0)
    return queries, rng.uniform(20.0, 200.0, n_queries) / 2


def online_cost(queries: Floats, half_widths: Floats) -> float:
    """Cells raised to a common weight as the queries come."""
    weights = np.zeros(queries.shape[1])

    def is_met(query: Floats, half_width: float, level: float) -> bool:
        support = query != 0
        known = np.maximum(weights[support], level)
        law = law_of_noise(np.abs(query[support]) / known)
        return law.half_width(CONFIDENCE) <= half_width

    for query, half_width in zip(queries, half_widths, strict=True):
        support = query != 0
        low, high = 1e-9, 1e3
        if weights[support].all() and is_met(query, half_width, 0.0):
            continue
        for _ in range(N_BISECTIONS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_met(query, half_width, middle) else (middle, high)
        weights[support] = np.maximum(weights[support], high)
    return float(weights.max())


def on_atoms(queries: Floats, half_widths: Floats) -> tuple[WeightProblem, NDArray[np.bool_]]:
    """The batch's problem with every candidate, and which candidates are atoms."""
    _, first = np.unique(queries, axis=1, return_index=True)
    atoms = queries[:, np.sort(first)]
    candidates = candidate_rows([], [atoms], atoms.shape[1], with_cells=True)
    k = len(candidates.rows)
    problem = WeightProblem(
        rows=candidates.rows,
        bought=np.zeros(k),
        is_fixed=np.zeros(k, dtype=np.bool_),
        lattice_steps=np.zeros(k),
        ties=np.arange(k),
        queries=atoms,
        half_widths=half_widths,
        confidences=np.full(len(atoms), CONFIDENCE),
        paid=np.zeros(atoms.shape[1]),
    )
    return problem, candidates.of_kind("cells")


def random_starts(problem: WeightProblem, cells: NDArray[np.bool_], n: int) -> Iterator[Floats]:
    """Weights over three orders of magnitude, leaning to atoms in every other start."""
    rng = np.random.default_rng(20120812)
    for count in range(n):
        start = 10.0 ** rng.uniform(-3.0 * (count % 3) / 2, 0.0, len(problem.rows))
        yield np.where(cells & (count % 2 == 1), 1.0, start)


def planned_cost(queries: Floats, half_widths: Floats) -> float:
    """`plan_batch` as shipped, on a table of one column, priced by the accountant."""
    n_cells = queries.shape[1]
    schema = Schema(
        table="cells",
        axes=(IntegerAxis(name="cell", low=0, high=n_cells - 1),),
        n_records_max=2**20,
    )
    asked = [
        Wanted(
            QueryBlock(
                LinearQuery((Term(Fraction(1), (Factor(("cell",), query.astype(np.int64)),)),))
            ),
            AccuracyTarget(half_width=float(half_width), confidence=CONFIDENCE),
        )
        for query, half_width in zip(queries, half_widths, strict=True)
    ]
    plan = plan_batch(asked, schema)
    for query, promised in zip(asked, plan.half_widths, strict=True):
        if max(promised) > query.target.half_width:
            raise RuntimeError("a promise wider than its target")
    found = CostState().charged(plan.measurements).table_cost()
    return float(Fraction(found.units, UNITS_PER_EPSILON))


def measured(workload: Workload, n_starts: int) -> dict[str, float]:
    """Every figure of one batch."""
    queries, half_widths = drawn(workload)
    problem, cells = on_atoms(queries, half_widths)
    uniform = scaled_to_meet(problem, cells.astype(np.float64))
    if uniform is None:
        raise RuntimeError("atoms determine every query")
    begun = perf_counter()
    planned = planned_cost(queries, half_widths)
    seconds = perf_counter() - begun
    found = [improved(problem, start) for start in random_starts(problem, cells, n_starts)]
    costs = [solution.cost for solution in found if solution is not None]
    alone = -math.log1p(-CONFIDENCE) / half_widths
    figures = {
        "alone": float((alone @ np.abs(queries)).max()),
        "online": online_cost(queries, half_widths),
        "uniform": uniform.cost,
        "planned": planned,
        "searched": min([uniform.cost, *costs]),
        "seconds_planned": seconds,
        "seconds_searched": perf_counter() - begun - seconds,
    }
    progress(f"{workload.name}: " + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()))
    return figures


def main() -> None:
    """Measure every batch and report."""
    quick = wants_quick("What a declared batch costs.")
    workloads = WORKLOADS[::3] if quick else WORKLOADS
    figures = {one.name: measured(one, N_STARTS // 4 if quick else N_STARTS) for one in workloads}
    bars = []
    for name, found in figures.items():
        online = min(found["online"], found["uniform"])
        best = min(found["searched"], online)
        above_online = found["planned"] / online
        bars.append(
            Bar(f"{name}: planned over online", above_online, 1.0, above_online <= 1 + ROUNDING)
        )
        ratio = found["planned"] / best
        bars.append(
            Bar(f"{name}: planned over the best", ratio, ABOVE_BEST_MAX, ratio <= ABOVE_BEST_MAX)
        )
    run({"batches": figures}, bars)


if __name__ == "__main__":
    main()
