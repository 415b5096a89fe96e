"""Synthetic tables of data that the method was not made on: wide, small, and full of ties.

    python -m benchmarks.synthesis_unseen [--quick] [--only TABLE,TABLE]

Flights, a shop, surveys, wine and penguins, and Adult with a hundred columns
(synthesis_packaged.py), through the gate, at several epsilons. Beside each stand independent
columns, exact and bought for the same epsilon, and the real rows drawn again
(synthesis_references.py). Needs the packages of the extra `bench`; a table whose package is missing
is left out.
"""

import argparse
from collections.abc import Mapping, Sequence
from fractions import Fraction

from benchmarks.report import Bar, progress, run
from benchmarks.synthesis_references import bootstrap, floor, independent
from benchmarks.synthesis_runs import Task, averaged, in_own_process
from benchmarks.synthesis_tables import more_tables, table_named
from proxy.synthetic_tables.request import Method

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3), Fraction(10))
ONE = Fraction(1)
DELTA = Fraction(1, 10**9)
N_RUNS = 3
WORSE_THAN_FLOOR_MAX = 1.10
FALLS_BY = 0.98  # of the error at the next smaller epsilon: more is no fall
ERRORS_MAX = {
    Task("flights", ONE): 0.12,
    Task("flights11", ONE): 0.028,
    Task("adult100", ONE): 0.060,
    Task("adult13", ONE, delta=DELTA): 0.0355,
}
TRIPLES_MAX = {Task("adult13", ONE, delta=DELTA): 0.072}
CPU_SECONDS_MAX = {Task("adult13", ONE, delta=DELTA): 2.0, Task("adult100", ONE): 10.0}
CANCELLED_OFF_MAX = 0.10
NULLS_OFF_MAX = 0.02


def main() -> None:
    """Make every table at every epsilon, and print the errors beside the references."""
    parser = argparse.ArgumentParser(description="Synthetic tables of data not seen before.")
    parser.add_argument("--quick", action="store_true", help="epsilon 1, one run each")
    parser.add_argument("--only", default="", help="some tables, with commas between them")
    asked = parser.parse_args()
    names = [name for name in asked.only.split(",") if name] or ["adult13", *more_tables()]
    epsilons = (ONE,) if asked.quick else EPSILONS
    figures: dict[str, object] = {}
    bars: list[Bar] = []
    for name in names:
        found, of_table = measured(name, epsilons, 1 if asked.quick else N_RUNS)
        figures[name] = found
        bars += of_table
        progress(f"{name}: {found}")
    run(figures, bars)


def measured(
    name: str, epsilons: Sequence[Fraction], n_runs: int
) -> tuple[dict[str, object], list[Bar]]:
    """The figures and bars of one table."""
    table = table_named(name)
    real = table.rows()
    figures: dict[str, object] = {
        "rows": len(real),
        "independent": independent(table, real),
        "bootstrap": bootstrap(table, real),
    }
    bars: list[Bar] = []
    errors: dict[str, list[float]] = {"pure": [], "delta": []}
    for epsilon in epsilons:
        least = floor(table, real, epsilon)
        figures[f"floor, epsilon {float(epsilon):g}"] = least
        for delta in (None, DELTA):
            task = Task(name, epsilon, Method.PAIRWISE, delta=delta)
            found = averaged([in_own_process(task) for _ in range(n_runs)])
            figures[task.name] = found
            errors["pure" if delta is None else "delta"].append(found["pairs"])
            if delta is None:
                bars.append(_at_most(f"pairs, {task.name}, over independent columns bought",
                                     found["pairs"] / least, WORSE_THAN_FLOOR_MAX))  # fmt: skip
            bars += _bars_of(task, found)
    for kind, of_kind in errors.items():
        for before, after, epsilon in zip(of_kind, of_kind[1:], epsilons[1:], strict=False):
            title = f"{name}, {kind}: error at epsilon {float(epsilon):g} over that at less"
            bars.append(_at_most(title, after / before, FALLS_BY))
    return figures, bars


def _bars_of(task: Task, found: Mapping[str, float]) -> list[Bar]:
    bars = []
    if task in ERRORS_MAX:
        bars.append(_at_most(f"pairs, {task.name}", found["pairs"], ERRORS_MAX[task]))
    if task in TRIPLES_MAX:
        bars.append(_at_most(f"triples, {task.name}", found["triples"], TRIPLES_MAX[task]))
    if task in CPU_SECONDS_MAX:
        bars.append(_at_most(f"CPU s, {task.name}", found["cpu_seconds"], CPU_SECONDS_MAX[task]))
    if "cancelled_off" in found and task.epsilon >= 1:
        bars += [
            _at_most(f"cancelled off, {task.name}", found["cancelled_off"], CANCELLED_OFF_MAX),
            _at_most(f"their NULLs off, {task.name}", found["nulls_off"], NULLS_OFF_MAX),
        ]
    return bars


def _at_most(title: str, value: float, most: float) -> Bar:
    return Bar(title, value, most, value <= most)


if __name__ == "__main__":
    main()
