"""Every private value on the way of a release, on neighbouring tables, against what was paid.

Histories of counts, sums, units, statistics, choices and synthetic tables, with Laplace and with
Gaussian noise, are run on a table and again on a neighbour that is forced to release the same
(tests/support/recorded.py); and faults of every stage are put in and have to be convicted.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import Bar, progress, run, wants_quick
from tests.end_to_end.test_record_and_replay import EPOCH, VISITS, replayed
from tests.support.recorded import Convicted, compared
from tests.support.recorded_devices import compared_states
from tests.support.recorded_worlds import WORLDS, World
from tests.support.seeded_faults import FAULTS, Fault

N_PAIRS, N_PAIRS_QUICK = 20, 2
N_SEEDS = 8


def main() -> None:
    """Measure, and print the report."""
    quick = wants_quick(__doc__ or "")
    n_pairs = N_PAIRS_QUICK if quick else N_PAIRS
    found = {world.name: measured(world, n_pairs) for world in WORLDS}
    with TemporaryDirectory() as folder:
        states = [
            compared_states(EPOCH, VISITS, 7, Path(folder), seed).n_values for seed in range(100)
        ]
    convicted = {fault.name: is_convicted(fault) for fault in FAULTS}
    values = sum(one["values"] for one in found.values()) + sum(states)
    largest = max(one["largest share lost"] for one in found.values())
    n_faults = sum(convicted.values())
    run(
        {"worlds": found, "values compared": values, "faults": convicted},
        [
            Bar("largest loss of a transcript over what was paid", largest, 1, largest <= 1),
            Bar("faults convicted at their stage", n_faults, len(FAULTS), n_faults == len(FAULTS)),
        ],
    )


def measured(world: World, n_pairs: int) -> dict[str, float]:
    """Pairs of neighbours of one declaration, all compared; raises Convicted on any leak."""
    progress(f"{world.name}: {n_pairs} pairs of neighbours")
    found = [compared(*replayed(world, seed)) for seed in range(n_pairs)]
    return {
        "pairs": n_pairs,
        "values": sum(one.n_values for one in found),
        "largest share lost": max(one.share for one in found),
    }


def is_convicted(fault: Fault) -> bool:
    """Whether a fault is found at one of the stages where it is."""
    progress(f"fault: {fault.name}")
    for seed in range(N_SEEDS):
        try:
            with fault.put_in():
                compared(*replayed(fault.world, seed, fault.n_units))
        except Convicted as convicted:
            return convicted.stage in fault.stages
    return False


if __name__ == "__main__":
    main()
