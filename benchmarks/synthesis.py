"""Synthetic tables through the gate: how close they are, and what they cost in time and memory.

    python -m benchmarks.synthesis [--quick] [--peers]

Every run is a process of its own: the table is opened with a durable ledger, a synthetic one is
made with the system's noise, and its pairs of columns are compared with the real rows
(marginal_distance.py). Three more claims are measured: statements bought before make a table better
at the same epsilon, and make one of their own for free; and what was measured for a table answers
counts for free, with intervals that cover.

Figures of other libraries are listed as they were measured for this project
(docs/synthesis_benchmark.md); this run does not check them. `--peers` runs those that can be
installed in the same go (synthesis_peers.py).
"""

import argparse
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from benchmarks.report import Bar, progress, run
from benchmarks.synthesis_peers import peer_figures
from benchmarks.synthesis_runs import Task, averaged, in_own_process
from benchmarks.synthesis_tables import tables
from proxy.synthetic_tables.request import Method

N_RUNS = 5
ONE, TENTH = Fraction(1), Fraction(1, 10)
DELTA = Fraction(1, 10**9)
HALF = Fraction(1, 2)  # for PrivBayes, whose epsilon of 1 is about one row replaced by another
ERRORS_MAX = {
    Task("adult14", ONE): 0.042,
    Task("adult15", ONE): 0.028,
    Task("nltcs", ONE): 0.0095,
    Task("br2000", ONE): 0.018,
    Task("acs", ONE): 0.006,
    Task("adult14", TENTH): 0.108,
    Task("adult14", ONE, delta=DELTA): 0.034,
    Task("adult15", ONE, delta=DELTA): 0.021,
    Task("nltcs", ONE, delta=DELTA): 0.0045,
    Task("br2000", ONE, delta=DELTA): 0.0115,
    Task("acs", ONE, delta=DELTA): 0.0023,
    Task("adult14", TENTH, delta=DELTA): 0.095,
    Task("adult14", HALF, Method.PRIVBAYES): 0.10,
    Task("nltcs", HALF, Method.PRIVBAYES): 0.042,
}
WITHOUT_BARS = (  # to hold PrivBayes against
    Task("adult14", HALF),
    Task("nltcs", HALF),
    Task("nltcs", TENTH),
    Task("nltcs", TENTH, Method.PRIVBAYES),
)
WITHOUT_FILES = Task("adult13", ONE)  # from the example's table: a figure without a bar
PLAIN = Task("adult14", ONE)
AFTER_STATEMENTS = Task("adult14", ONE, n_statements=20)
CPU_SECONDS_MAX = 1.0
PEAK_MB_MAX = 300.0
COVERED_MIN = 0.93  # of intervals at 95 %; those of a run share noise, so that their mean varies
DATASYNTHESIZER_ERROR = 0.503  # version 0.1.13, Adult with 14 columns, epsilon 1
TIMES_BELOW_MIN = 5.0
# Mean distance over all pairs, at epsilon 1 with delta 1e-9 where not pure, on one core.
MEASURED_EARLIER = {
    "adult14": {
        "DataSynthesizer 0.1.13, pure": DATASYNTHESIZER_ERROR,
        "PrivBayes as published, pure": 0.0939,
        "OpenDP 0.16 AIM, pure, 28 rounds": 0.0922,
        "smartnoise-synth 1.0.8 MST": 0.135,
        "dpmm 0.1.9 PrivBayes+PGM": 0.0708,
        "mbi MST": 0.0516,
        "mbi AIM, 28 rounds": 0.0527,
        "dpmm 0.1.9 AIM": 0.0455,
        "dpsynth SWIFT": 0.0379,
    },
    "adult15": {
        "DataSynthesizer 0.1.13, pure": 0.298,
        "PrivBayes as published, pure": 0.0764,
        "mbi MST": 0.0372,
        "dpmm 0.1.9 AIM": 0.0337,
        "dpsynth SWIFT": 0.0207,
    },
    "nltcs": {
        "DataSynthesizer 0.1.13, pure": 0.0520,
        "PrivBayes as published, pure": 0.0387,
        "mbi MST": 0.0875,
        "dpmm 0.1.9 AIM": 0.0061,
    },
    "br2000": {"mbi MST": 0.0268, "dpsynth SWIFT": 0.0115},
    "acs": {"mbi MST": 0.0127},
}


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description="How near synthetic tables are, what they take.")
    parser.add_argument("--quick", action="store_true", help="one run each, the same bars")
    parser.add_argument("--peers", action="store_true", help="run other libraries, too; an hour")
    asked = parser.parse_args()
    quick = bool(asked.quick)
    at_hand = tables()
    tasks = [
        task for task in (*ERRORS_MAX, *WITHOUT_BARS, AFTER_STATEMENTS) if task.table in at_hand
    ]
    if not tasks:
        progress("The benchmark's files are not at hand; the example's table is made, without bars")
        tasks = [WITHOUT_FILES]
    found = {}
    for task in tasks:
        runs = [in_own_process(task) for _ in range(1 if quick else N_RUNS)]
        found[task] = averaged(runs)
        progress(f"{task.name}: pairs {found[task]['pairs']:.4f}, {found[task]}")
    figures: dict[str, object] = {task.name: one for task, one in found.items()}
    figures["measured_earlier"] = MEASURED_EARLIER
    if asked.peers:
        figures["peers"] = peer_figures(quick=quick)
    run(figures, [*_error_bars(found), *_bars_of_adult(found), *_history_bars(found)])


def _error_bars(found: Mapping[Task, Mapping[str, float]]) -> list[Bar]:
    bars = []
    for task, figures in found.items():
        if task in ERRORS_MAX:
            error, most = figures["pairs"], ERRORS_MAX[task]
            bars.append(Bar(f"mean distance of pairs, {task.name}", error, most, error <= most))
        spent, epsilon = figures["epsilon_spent"], float(task.epsilon)
        bars.append(Bar(f"epsilon spent, {task.name}", spent, epsilon, spent <= epsilon))
    asked = [one for one in found.values() if "counts_free" in one]
    free = min(one["counts_free"] for one in asked)
    covered = float(np.mean([one["counts_covered"] for one in asked]))
    return [
        *bars,
        Bar("share of measured counts that are free", free, 1.0, free == 1.0),
        Bar("share of their intervals at 0.95 that cover", covered,
            COVERED_MIN, covered >= COVERED_MIN),
    ]  # fmt: skip


def _bars_of_adult(found: Mapping[Task, Mapping[str, float]]) -> list[Bar]:
    bars = []
    if PLAIN in found:
        seconds, peak = found[PLAIN]["cpu_seconds"], found[PLAIN]["peak_mb"]
        bars += [
            Bar("CPU seconds to measure, fit and draw Adult", seconds,
                CPU_SECONDS_MAX, seconds <= CPU_SECONDS_MAX),
            Bar("peak memory of a process that makes Adult, MB", peak,
                PEAK_MB_MAX, peak <= PEAK_MB_MAX),
        ]  # fmt: skip
    privbayes = Task("adult14", HALF, Method.PRIVBAYES)
    if privbayes in found:
        times = DATASYNTHESIZER_ERROR / found[privbayes]["pairs"]
        bars.append(
            Bar("privbayes on Adult, times nearer than DataSynthesizer was", times,
                TIMES_BELOW_MIN, times >= TIMES_BELOW_MIN)
        )  # fmt: skip
    return bars


def _history_bars(found: Mapping[Task, Mapping[str, float]]) -> list[Bar]:
    if not {PLAIN, AFTER_STATEMENTS} <= found.keys():
        return []
    after, plain = found[AFTER_STATEMENTS], found[PLAIN]["pairs"]
    return [
        Bar("mean distance after 20 statements, at the same epsilon", after["pairs"],
            plain, after["pairs"] < plain),
        Bar("epsilon spent on a table from history alone", after["history_alone_epsilon"],
            0.0, after["history_alone_epsilon"] == 0.0),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
