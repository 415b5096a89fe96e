"""Claims: whether stated probabilities are true as often, and what deciding a claim costs.

*Calibration.* Random claims over counts, sums, averages, differences and ratios on three tables.
Each threshold is drawn uniformly over a range about the truth that is wide beside the noise, as the
flat prior says. In each tenth of stated probability the share of claims that are true is compared
with what was stated, in deviations of chance; for each way to compute the law. Half of the claims
rest on several noises. The same probabilities for noise 1.5 times as wide as stated must fail.

*Deciding.* Five hundred thresholds, from a tenth of a count to ten times it, are decided with a
probability of 0.99, each on an empty history. The price is compared with that of a half-width that
decides all of the nearest tenth: as narrow as the smallest distance. At the median a decision costs
less than a third of it; and with that half-width as the last look none costs more than half again.
Figures without a bar compare it with a half-width that decides the others, as narrow as nine tenths
of the distances, and with what each distance would cost if it were known.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.histogram_source import HistogramSource
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import IntegerAxis, MeasureAxis
from cube.schema import Schema
from cube.target import AccuracyTarget, PosteriorMethod
from planner.measuring.candidates import Strategy
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable

SEED: Final = 20261128
N_CLAIMS, N_CLAIMS_QUICK = 2000, 300
N_THRESHOLDS, N_THRESHOLDS_QUICK = 500, 120
DEVIATIONS: Final = 4.5  # of 30 tenths, one is beyond it by chance in one run of 5,000
WRONG_SCALE: Final = 1.5
REACH: Final = 2.0  # half-widths on either side of the truth, in which thresholds are drawn
N_GROUPS: Final = 8
SELECT: Final = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) {} FROM t WHERE g = {}"
# Statements, half-widths (None: what the default of the table gives), and whether they are linear.
KINDS: Final = {
    "count": ("COUNT(*)", "half_width => 60"),
    "sum": ("SUM(x)", "half_width => 3000"),
    "difference": ("COUNT(*) FILTER (WHERE m = 1) - COUNT(*) FILTER (WHERE m = 0)", ""),
    "average": ("AVG(x)", ""),
    "ratio": ("COUNT(*) FILTER (WHERE m = 1) / COUNT(*)::float", ""),
}
VALUE, N_MAX = 16_000, 100_000  # the count that is compared, and the most records
DECIDE: Final = 0.99
MEDIAN_MAX, MOST_MAX, WRONG_MAX = 1 / 3, 1.5, 0.01
ADDED_MAX: Final = 0.3  # ms of a claim, beside a free answer
GAPS: Final = (15_000, 5_000)


@dataclass(frozen=True, slots=True)
class World:
    """A table: what `x` is worth, and the (group, m, x) counts."""

    schema: Schema
    values: np.ndarray
    counts: np.ndarray

    def truth(self, kind: str, group: int) -> float:
        """The true value of an expression in a group."""
        cells = self.counts[group]
        number, total = float(cells.sum()), float((cells @ self.values).sum())
        first, second = cells.sum(axis=1)
        return {
            "count": number,
            "sum": total,
            "difference": float(second - first),
            "average": total / number,
            "ratio": float(second) / number,
        }[kind]


def world(rng: np.random.Generator, *, low: int, skew: float) -> World:
    """A table with eight groups of some hundred to some thousand records."""
    x = MeasureAxis(name="x", low=low, high=low + 100, step=5)
    axes = (
        IntegerAxis(name="g", low=0, high=N_GROUPS - 1),
        IntegerAxis(name="m", low=0, high=1),
        x,
    )
    values = low + 5 * np.arange(21)
    shares = rng.dirichlet(np.full((2 * 21), skew), size=N_GROUPS).reshape(N_GROUPS, 2, 21)
    sizes = rng.integers(800, 4000, size=N_GROUPS)
    counts = np.rint(shares * sizes[:, None, None]).astype(np.int64)
    counts[:, :, 10] += 30
    return World(Schema(table="t", axes=axes, n_records_max=40_000), values, counts)


@contextmanager
def engine_on(schema: Schema, counts: np.ndarray) -> Iterator[Engine]:
    """An engine with an empty history."""
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "t.ledger") as ledger:
        source = HistogramSource([axis.name for axis in schema.axes], counts)
        gate = open_table(ledger, schema, Fraction(100_000), source, SystemNoise())
        default = AccuracyTarget(half_width=20.0, confidence=0.95)
        yield Engine({"t": ServedTable(schema, default, gate, Strategy.AUTO)})


def ask(engine: Engine, sql: str) -> tuple[dict[str, float], float]:
    """The only row of an answer, and what it cost."""
    found = engine.answer(QueryRequest(sql=sql))
    if found.receipt is None:
        raise RuntimeError("an answer about a private table has a receipt")
    (row,) = found.data.to_pylist()
    return row, float(found.receipt.epsilon_spent)


def widths(worlds: list[World]) -> dict[tuple[int, str, int], float]:
    """The half-width of each expression in each group, on a history without parts of it.

    Where parts were bought before, it is narrower: thresholds lie about it as widely as here.
    """
    found = {}
    for place, one in enumerate(worlds):
        for kind, (expression, options) in KINDS.items():
            with engine_on(one.schema, one.counts) as engine:
                for group in range(N_GROUPS):
                    ends = (
                        f"{expression} AS a, DP_INTERVAL_LOW(a) AS low, DP_INTERVAL_HIGH(a) AS up"
                    )
                    row, _ = ask(engine, statement(options, ends, group))
                    found[place, kind, group] = max(row["up"] - row["a"], row["a"] - row["low"])
    return found


def statement(options: str, items: str, group: int) -> str:
    """A SELECT over one group."""
    return SELECT.format(options or "confidence => 0.95", items, group)


def buy_parts(engine: Engine, group: int) -> None:
    """Buy counts and sums by `m`, of which later answers are made."""
    engine.answer(
        QueryRequest(
            sql=f"SELECT m, COUNT(*) AS n, SUM(x) AS s FROM t WHERE g = {group} GROUP BY m"  # noqa: S608 - fixed
        )
    )


def calibration(n_claims: int) -> tuple[dict[str, object], list[Bar]]:
    """Stated probabilities and truths, for each law."""
    rng = np.random.default_rng(SEED)
    worlds = [world(rng, low=low, skew=skew) for low, skew in ((0, 1.0), (0, 0.1), (-50, 1.0))]
    known = widths(worlds)
    stated: dict[str, list[float]] = {method.value: [] for method in PosteriorMethod}
    is_true: list[bool] = []
    kinds = list(KINDS)
    while len(is_true) < n_claims:
        place = len(is_true) // N_GROUPS % len(worlds)
        one = worlds[place]
        with engine_on(one.schema, one.counts) as engine:
            for group in range(N_GROUPS):
                if rng.random() < 0.5:
                    buy_parts(engine, group)
                kind = kinds[int(rng.integers(len(kinds)))]
                expression, options = KINDS[kind]
                truth, reach = one.truth(kind, group), REACH * known[place, kind, group]
                end = truth + float(rng.uniform(-reach, reach))
                is_true.append(truth > end)
                for method, found in stated.items():
                    law = f"{options}, posterior => '{method}'".lstrip(", ")
                    claim = f"DP_PROBABILITY({expression} > {end!r}) AS p"
                    found.append(ask(engine, statement(law, claim, group))[0]["p"])
        if len(is_true) % 200 < N_GROUPS:
            progress(f"{len(is_true)} of {n_claims} claims")
    truths = np.array(is_true)
    figures: dict[str, object] = {"claims": len(is_true)}
    bars = []
    for method, probabilities in stated.items():
        p = np.array(probabilities)
        tenths = off_by_tenth(p, truths)
        figures[method] = {"deviations_by_tenth": tenths, "score": score(p, truths)}
        worst = float(np.abs(tenths).max())
        bars.append(
            Bar(f"{method}: the worst tenth, in deviations", worst, DEVIATIONS, worst <= DEVIATIONS)
        )
    wrong = narrower(np.array(stated["exact"]))
    off = -score(wrong, truths)
    bars.append(
        Bar("noise 1.5 times as wide as stated, in deviations", off, DEVIATIONS, off > DEVIATIONS)
    )
    return figures, bars


def off_by_tenth(stated: np.ndarray, is_true: np.ndarray) -> list[float]:
    """In each tenth of stated probability: how far the share of true claims is off."""
    found = []
    for tenth in range(10):
        chosen = (stated >= tenth / 10) & (stated < (tenth + 1) / 10 + (tenth == 9))
        p = stated[chosen]
        deviation = max(float(np.sqrt((p * (1 - p)).sum())), 1.0)  # few claims: no normal law
        found.append(float((is_true[chosen] - p).sum()) / deviation)
    return found


def score(stated: np.ndarray, is_true: np.ndarray) -> float:
    """How far bold claims are from being true as often as stated; below 0 if too bold."""
    bold = 2 * stated - 1
    deviation = float(np.sqrt((stated * (1 - stated) * bold**2).sum()))
    return float(((is_true - stated) * bold).sum()) / deviation


def narrower(stated: np.ndarray) -> np.ndarray:
    """What would be stated if the noise, taken to be Laplace noise, were taken for narrower."""
    tail = np.clip(np.minimum(stated, 1 - stated), 1e-12, 0.5)
    other = 0.5 * (2 * tail) ** WRONG_SCALE
    return np.asarray(np.where(stated < 0.5, other, 1 - other))


def deciding(n_thresholds: int) -> tuple[dict[str, object], list[Bar]]:
    """What decisions cost, and how many are wrong."""
    rng = np.random.default_rng(SEED + 1)
    schema = Schema(table="t", axes=(IntegerAxis(name="g", low=0, high=1),), n_records_max=N_MAX)
    counts = np.array([VALUE, 4000])
    ends = np.rint(VALUE * 10 ** rng.uniform(-1, 1, n_thresholds)) + 0.5
    distances = np.abs(ends - VALUE)
    nearest, tenth = float(distances.min()), float(np.quantile(distances, 0.1))
    both_sides = 1 - 2 * (1 - DECIDE)

    def price_of(options: str) -> float:
        with engine_on(schema, counts) as engine:
            return ask(engine, statement(options, "COUNT(*) AS n", 0))[1]

    at_once, at_tenth = (
        price_of(f"half_width => {width!r}, confidence => {both_sides!r}")
        for width in (nearest, tenth)
    )
    spent: dict[str, list[float]] = {"to the end": [], "to that width": []}
    wrong = undecided = 0
    for number, end in enumerate(ends.tolist()):
        for name, more in (("to the end", "1"), ("to that width", repr(nearest))):
            width = f"decide => {DECIDE}, half_width => {more}"
            with engine_on(schema, counts) as engine:
                claim = f"DP_PROBABILITY(COUNT(*) > {end!r}) AS p"
                row, epsilon = ask(engine, statement(width, claim, 0))
            spent[name].append(epsilon)
            is_decided = max(row["p"], 1 - row["p"]) >= DECIDE
            if name == "to the end":
                undecided += not is_decided
                wrong += is_decided and (row["p"] > 0.5) != (end < VALUE)
        if number % 100 == 99:
            progress(f"{number + 1} of {n_thresholds} thresholds")
    of_all = np.array(spent["to the end"]) / at_once
    capped = np.array(spent["to that width"]) / at_once
    gaps = {}
    for gap in GAPS:
        known = price_of(f"half_width => {gap}, confidence => {both_sides!r}")
        prices = []
        for _ in range(9):
            with engine_on(schema, counts) as engine:
                width = f"decide => {DECIDE}, half_width => 1"
                claim = f"DP_PROBABILITY(COUNT(*) > {VALUE - gap}) AS p"
                prices.append(ask(engine, statement(width, claim, 0))[1])
        gaps[str(gap)] = {
            "epsilon": float(np.median(prices)),
            "if_the_gap_were_known": known,
            "ratio": float(np.median(prices)) / known,
        }
    figures = {
        "thresholds": n_thresholds,
        "half_width_for_all": {"distance": nearest, "epsilon": at_once},
        "half_width_for_nine_tenths": {"distance": tenth, "epsilon": at_tenth},
        "undecided": undecided,
        "wrong": wrong,
        "share_of_at_once": {
            "median": float(np.median(of_all)),
            "largest": float(of_all.max()),
            "median_to_that_width": float(np.median(capped)),
            "largest_to_that_width": float(capped.max()),
            "median_of_nine_tenths": float(np.median(of_all)) * at_once / at_tenth,
        },
        "by_gap": gaps,
    }
    share, median, most = wrong / n_thresholds, float(np.median(of_all)), float(capped.max())
    return figures, [
        Bar("wrong decisions, as a share", share, WRONG_MAX, share <= WRONG_MAX),
        Bar("median price, of asking at once", median, MEDIAN_MAX, median <= MEDIAN_MAX),
        Bar("largest price to that width, of it", most, MOST_MAX, most <= MOST_MAX),
    ]


def added(n_times: int) -> dict[str, float]:
    """Milliseconds of processor time that a claim, and DP_STDERR, add to a free count."""
    rng = np.random.default_rng(SEED + 2)
    one = world(rng, low=0, skew=1.0)
    items = {
        "nothing": "n_{}",
        "standard_error": "n, DP_STDERR(n) AS s_{}",
        "claim": "n, DP_PROBABILITY(n > {}) AS p",
    }
    times: dict[str, list[float]] = {name: [] for name in items}
    with engine_on(one.schema, one.counts) as engine:
        buy_parts(engine, 0)
        for number in range(n_times):
            for name, item in items.items():
                sql = statement("half_width => 60", f"COUNT(*) AS {item.format(1000 + number)}", 0)
                begun = time.process_time()
                ask(engine, sql)
                times[name].append(1000 * (time.process_time() - begun))
    medians = {name: float(np.median(found)) for name, found in times.items()}
    return {name: found - medians["nothing"] for name, found in medians.items()}


def main() -> NoReturn:
    """Measure, and compare with the bars."""
    is_quick = wants_quick(__doc__)
    calibrated, bars = calibration(N_CLAIMS_QUICK if is_quick else N_CLAIMS)
    decided, more = deciding(N_THRESHOLDS_QUICK if is_quick else N_THRESHOLDS)
    adds = added(60 if is_quick else 300)
    milliseconds = adds["claim"]
    figures = {"calibration": calibrated, "deciding": decided, "adds_ms": adds}
    last = Bar(
        "a claim beside a free count, ms", milliseconds, ADDED_MAX, milliseconds <= ADDED_MAX
    )
    run(figures, [*bars, *more, last])


if __name__ == "__main__":
    main()
