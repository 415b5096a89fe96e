"""Speed and exactness of the law of the noise, against simulation and independent oracles.

    python -m benchmarks.posterior_speed [--quick]

The 95 % half-width of a sum of 1000 Laplace variables, from nothing: by contour (the law built
anew each time, no cache), by Fourier series, and by 10**4 Monte Carlo draws, alternating in one
process. Then the contour's tails against oracles on random scales: the largest error, and how often
it exceeded the bound that the law states.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from benchmarks.laplace_oracles import (
    GIL_PELAEZ_ERROR,
    equal_scales_tail,
    gil_pelaez_tail,
    partial_fractions_tail,
)
from benchmarks.report import Bar, progress, run, wants_quick
from inference.noise_law.laplace_sum import standard_deviation
from inference.noise_law.law import ContourLaw
from inference.noise_law.paper_methods import ConvolutionLaw, MonteCarloLaw

SEED = 20120812
N_SCALES = 1000
N_DRAWS = 10_000
CONFIDENCE = 0.95
SPEEDUP_MIN = 100.0
ERROR_MAX = 1e-10
DEVIATIONS = (0.01, 0.3, 1.0, 2.5, 6.0, 12.0)

Scales = NDArray[np.float64]


def families(generator: np.random.Generator) -> dict[str, Scales]:
    """Scale sets of one size: comparable, heavy-tailed, mostly dwarfs, all equal."""
    return {
        "uniform": generator.uniform(0.1, 1.0, N_SCALES),
        "lognormal_1.5": generator.lognormal(0.0, 1.5, N_SCALES),
        "eighth_powers": generator.uniform(0.0, 1.0, N_SCALES) ** 8,
        "equal": np.ones(N_SCALES),
    }


def milliseconds(action: Callable[[], float]) -> float:
    """How long one call takes."""
    start = perf_counter()
    action()
    return 1e3 * (perf_counter() - start)


def timings(scales: Scales, *, n_rounds: int) -> dict[str, float]:
    """Median milliseconds of a half-width by each method, the methods taking turns."""
    generator = np.random.default_rng(SEED)
    methods: dict[str, Callable[[], float]] = {
        "contour": lambda: ContourLaw(scales).half_width(CONFIDENCE),
        "convolution": lambda: ConvolutionLaw(scales).half_width(CONFIDENCE),
        "monte_carlo": lambda: MonteCarloLaw(
            scales, generator=generator, n_draws=N_DRAWS
        ).half_width(CONFIDENCE),
    }
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(n_rounds):
        for name, action in methods.items():
            # The fast ones several times a round: one call in between warms nothing up for them.
            repeats = 1 if name == "monte_carlo" else 5
            times[name] += [milliseconds(action) for _ in range(repeats)]
    return {f"{name}_ms": median(values) for name, values in times.items()}


def stress_cases(
    generator: np.random.Generator, n_rounds: int
) -> Iterator[tuple[Scales, Callable[[float], float], float]]:
    """Random scales, an oracle for their tails, and the oracle's own error."""
    for _ in range(n_rounds):
        spread = float(generator.choice([0.1, 1.0, 4.0, 10.0]))
        size = 10.0 ** float(generator.integers(-8, 9))
        few = size * np.exp(generator.normal(0.0, spread, int(generator.integers(2, 10))))
        yield few, partial(partial_fractions_tail, few), 1e-15
        many = np.concatenate(
            (
                generator.uniform(0.0, 1.0, int(generator.integers(1, 500))) ** 8,
                generator.uniform(0.4, 1.0, 10),
            )
        )
        yield many, partial(gil_pelaez_tail, many), GIL_PELAEZ_ERROR
        n_equal = int(generator.integers(2, 500))
        equal = np.full(n_equal, size)
        yield equal, partial(equal_scales_tail, n_equal, size), 1e-13


def stress(n_rounds: int) -> dict[str, float]:
    """Largest error of the contour's tails, and how many exceeded the stated bound."""
    largest, n_tails, n_violated, n_uncovered = 0.0, 0, 0, 0
    for scales, oracle, oracle_error in stress_cases(np.random.default_rng(SEED), n_rounds):
        law = ContourLaw(scales)
        for deviations in DEVIATIONS:
            z = deviations * standard_deviation(scales)
            error = abs(law.tail(z) - oracle(z))
            largest = max(largest, error)
            n_tails += 1
            n_violated += error > law.tail_error + oracle_error
        beyond = 2 * oracle(law.half_width(CONFIDENCE))
        n_uncovered += beyond > 1 - CONFIDENCE + 2 * oracle_error + 1e-15
    return {
        "tails": n_tails,
        "largest_error": largest,
        "bound_violated": n_violated,
        "half_widths_too_small": n_uncovered,
    }


def large_errors(scales: dict[str, Scales]) -> dict[str, float]:
    """Largest error of the contour on the timed scale sets."""
    return {
        name: max(
            abs(ContourLaw(array).tail(z) - gil_pelaez_tail(array, z))
            for z in (deviations * standard_deviation(array) for deviations in DEVIATIONS)
        )
        for name, array in scales.items()
    }


def main() -> None:
    """Measure, print one JSON object, exit 1 if a bar does not hold."""
    quick = wants_quick("speed and accuracy of the law of the noise")
    sets = families(np.random.default_rng(SEED))
    measured = {}
    for name, scales in sets.items():
        progress(f"timing {N_SCALES} scales, {name}")
        measured[name] = timings(scales, n_rounds=3 if quick else 11)
        times = measured[name]
        times["speedup"] = times["monte_carlo_ms"] / times["contour_ms"]
    progress("errors on the timed scales")
    errors = large_errors(sets)
    progress("stress")
    stressed = stress(50 if quick else 700)
    speedup = min(times["speedup"] for times in measured.values())
    error = max(stressed["largest_error"], *errors.values())
    misses = stressed["bound_violated"] + stressed["half_widths_too_small"]
    run(
        {
            "scales": N_SCALES,
            "draws": N_DRAWS,
            "half_width": measured,
            "largest_error_timed_scales": errors,
            "stress": stressed,
        },
        [
            Bar(
                "contour against Monte Carlo, times faster",
                speedup,
                SPEEDUP_MIN,
                speedup >= SPEEDUP_MIN,
            ),
            Bar("largest error of a tail", error, ERROR_MAX, error < ERROR_MAX),
            Bar("times the stated bound was violated", misses, 0.0, misses == 0),
        ],
    )


if __name__ == "__main__":
    main()
