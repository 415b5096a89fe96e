"""One run of a synthetic table, in a process of its own: how close it is, and what it cost.

The table is behind a real gate with the system's noise, so runs differ and have no seed. Measuring
begins when the table has been opened and ends with the rows.
"""

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.marginal_distance import pairs_distance, triples_distance
from benchmarks.synthesis_tables import NAME, BenchTable, positions, served, table_named
from cube.axis import Axis, CategoryAxis, IntegerAxis
from cube.query import Partition
from inference.history import counts_groups
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.synthetic_tables.make import make
from proxy.synthetic_tables.request import MadeTable, Method, Progress, SynthesisRequest
from proxy.tables.private_table import ServedTable

if TYPE_CHECKING:
    from proxy.engine.engine import Engine

N_ONE_WAY = 8  # of the statements that are asked beforehand
N_CELLS_MAX = 300  # of a statement on two columns
HALF_WIDTH = 150.0  # of each of their groups, at 95 %
N_ASKED = 200  # counts that are asked of a run's measured pairs
INTERVAL = "COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high"
LOOSE = RequestedTarget(half_width=1e6, confidence=0.95)  # whatever history says is enough


@dataclass(frozen=True, slots=True)
class Task:
    """What to make.

    Parameters
    ----------
    table : str
    epsilon : Fraction
    method : Method
    n_statements : int
        GROUP BY statements that are bought before; then a table from them alone is made too.
    delta : Fraction, optional
        With Gaussian noise, under this delta.
    """

    table: str
    epsilon: Fraction
    method: Method = Method.PAIRWISE
    n_statements: int = 0
    delta: Fraction | None = None

    @property
    def name(self) -> str:
        """What figures call it."""
        after = f", after {self.n_statements} statements" if self.n_statements else ""
        delta = "" if self.delta is None else f", delta {float(self.delta):g}"
        return f"{self.table}, {self.method}, epsilon {float(self.epsilon):g}{delta}{after}"


def in_own_process(task: Task) -> dict[str, float]:
    """Its figures; nothing of another run is in this one's memory or caches."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(run_once, task).result()


def run_once(task: Task) -> dict[str, float]:
    """Make the table once, in this process."""
    threadpool_limits(limits=1)  # as in the served process
    table = table_named(task.table)
    start = time.process_time()
    with served(table, task.delta) as private:
        figures = {"reading_cpu_seconds": time.process_time() - start}
        figures |= _asked_before(table, private, task)
        made, spent = _made(private, task, task.epsilon)
        figures |= {**spent, "peak_mb": peak_mb(), "epsilon_spent": float(made.epsilon_spent)}
        real = table.rows()
        figures |= _errors(table, real, made)
        if task.method is Method.PAIRWISE and task.delta is None and _is_plain(table):
            figures |= _counted_free(table, private, real, made)
    return figures


def _made(
    private: ServedTable, task: Task, epsilon: Fraction
) -> tuple[MadeTable, dict[str, float]]:
    """A synthetic table, and the CPU seconds of each step."""
    begun: list[tuple[str, float]] = [("planning", time.process_time())]

    def watch(step: Progress) -> None:
        begun.append((step.name, time.process_time()))

    request = SynthesisRequest(table=NAME, epsilon=epsilon, method=task.method, delta=task.delta)
    made = make(private, request, LOCAL.payer, watch)
    end = time.process_time()
    figures = {"cpu_seconds": end - begun[0][1]}
    stops = [at for _, at in begun[1:]] + [end]
    for (name, at), stop in zip(begun, stops, strict=True):
        key = f"cpu_seconds, {name}"
        figures[key] = figures.get(key, 0.0) + stop - at
    return made, figures


def _errors(table: BenchTable, real: NDArray[np.int64], made: MadeTable) -> dict[str, float]:
    synthetic = positions(table.schema, made.rows)
    return {
        "pairs": pairs_distance(real, synthetic, table.sizes),
        "triples": triples_distance(real, synthetic, table.sizes),
        **_cancelled(table, real, synthetic),
    }


def _cancelled(
    table: BenchTable, real: NDArray[np.int64], synthetic: NDArray[np.int64]
) -> dict[str, float]:
    """Of flights: how far off the share of cancelled ones is, and that of those without a time."""
    names = [axis.name for axis in table.schema.axes]
    if not {"cancelled", "air_time"} <= set(names):
        return {}
    cancelled, air_time = names.index("cancelled"), names.index("air_time")
    null = table.sizes[air_time] - 1  # the last level
    shares = []
    for rows in (real, synthetic):
        inside = rows[rows[:, cancelled] == 1]
        without = float((inside[:, air_time] == null).mean()) if len(inside) else 0.0
        shares.append((len(inside) / max(1, len(rows)), without))
    (real_share, real_null), (share, nulls) = shares
    return {
        "cancelled_off": abs(share / real_share - 1),
        "nulls_off": abs(nulls - real_null),
    }


def _asked_before(table: BenchTable, private: ServedTable, task: Task) -> dict[str, float]:
    """Buy the statements of the task, and make a table of what they say, for nothing."""
    if not task.n_statements:
        return {}
    engine = _engine(private)
    target = RequestedTarget(half_width=HALF_WIDTH, confidence=0.95)
    for sql in _statements(table, task.n_statements):
        engine.answer(QueryRequest(sql=sql, target=target))
    bought = float(private.budget().spent)
    made, _ = _made(private, task, Fraction(0))
    errors = _errors(table, table.rows(), made)
    return {
        "statements_epsilon": bought,
        "history_alone_epsilon": float(made.epsilon_spent),
        "history_alone_pairs": errors["pairs"],
        "history_alone_unknown_columns": float(len(made.unknown)),
    }


def _statements(table: BenchTable, n_statements: int) -> list[str]:
    """Counts by one column and by two, always the same."""
    rng = np.random.default_rng(n_statements)
    sizes = {axis.name: axis.size for axis in table.schema.axes}
    small = [
        pair for pair in combinations(sizes, 2) if sizes[pair[0]] * sizes[pair[1]] <= N_CELLS_MAX
    ]
    ones = [(str(name),) for name in rng.permutation(list(sizes))[:N_ONE_WAY]]
    twos = [small[place] for place in rng.permutation(len(small))]
    keys = [", ".join(map(_quoted, scope)) for scope in [*ones, *twos][:n_statements]]
    return [f"SELECT {key}, COUNT(*) AS n FROM {NAME} GROUP BY {key}" for key in keys]  # noqa: S608 - public names


def _is_plain(table: BenchTable) -> bool:
    """Whether every level can be named in a condition: not bins, and not NULL."""
    return all(
        isinstance(axis, IntegerAxis | CategoryAxis) and None not in axis.levels
        for axis in table.schema.axes
    )


def _counted_free(
    table: BenchTable, private: ServedTable, real: NDArray[np.int64], made: MadeTable
) -> dict[str, float]:
    """Ask counts of what was measured as SQL: which are free, and whether intervals cover."""
    engine = _engine(private)
    rng = np.random.default_rng()
    partitions = _measured_pairs(private, made)
    asked = rng.integers(len(partitions), size=N_ASKED if partitions else 0)
    was_free, is_covered, half_widths = [], [], []
    for place in asked:
        levels = _cell(partitions[place], rng)
        where = " AND ".join(_is_in(table.schema.by_name[name], levels[name]) for name in levels)
        sql = f"SELECT {INTERVAL} FROM {NAME} WHERE {where}"  # noqa: S608 - public names and levels
        release = engine.answer(QueryRequest(sql=sql, target=LOOSE))
        [answer] = release.data.to_pylist()
        truth = int(
            np.all(
                [np.isin(real[:, table.place(name)], levels[name]) for name in levels], axis=0
            ).sum()
        )
        was_free.append(release.receipt is not None and release.receipt.epsilon_spent == 0)
        is_covered.append(answer["low"] <= truth <= answer["high"])
        half_widths.append((answer["high"] - answer["low"]) / 2)
    if not was_free:
        return {}
    return {
        "n_counts_asked": float(len(was_free)),
        "counts_free": float(np.mean(was_free)),
        "counts_covered": float(np.mean(is_covered)),
        "counts_half_width_median": float(np.median(half_widths)),
    }


def _measured_pairs(private: ServedTable, made: MadeTable) -> list[Partition]:
    """How the pairs that the table rests on were counted."""
    pairs = {scope for scope in made.tables if len(scope) > 1}
    measured = (one.block for one in private.gate.history.measurements)
    return [
        block.partition
        for block in measured
        if block.scope in pairs and counts_groups(block) and block.partition is not None
    ]


def _cell(partition: Partition, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """The levels, on each axis, of a group that is drawn from a partition."""
    places = np.nonzero(partition.labels == rng.integers(partition.n_groups))
    return {name: np.unique(found) for name, found in zip(partition.axes, places, strict=True)}


def _engine(private: ServedTable) -> "Engine":
    """What answers SQL; tables are made without it, and their memory is measured without it."""
    from proxy.engine.engine import Engine  # noqa: PLC0415 - as above

    return Engine({NAME: private})


def _is_in(axis: Axis, levels: NDArray[np.int64]) -> str:
    values = [axis.levels[level] for level in levels]
    texts = [str(one) if isinstance(axis, IntegerAxis) else f"'{one}'" for one in values]
    return f"{_quoted(axis.name)} IN ({', '.join(texts)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def peak_mb() -> float:
    """The most memory this process has had so far; what its parent had does not count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("this system does not tell a process's peak memory")


def averaged(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every figure over runs; of memory the largest. A step that is left out is 0."""
    names = dict.fromkeys(name for one in runs for name in one)
    mean = {name: float(np.mean([one.get(name, 0.0) for one in runs])) for name in names}
    mean["peak_mb"] = max(one["peak_mb"] for one in runs)
    mean["pairs_spread"] = float(np.std([one["pairs"] for one in runs]))
    return mean
