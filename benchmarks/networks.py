"""Networks learned from noisy tables: arcs that noise makes, and how near the Survey network is.

    python -m benchmarks.networks [--quick]

First independent columns: 200 tables of two columns with a rare level each and Laplace noise, by
our rule, in a tree, and as if noise only left fewer rows; then collections of randomised answers
about eight columns of two equal levels, beside as many rows as the answers are as certain as.

Then the Survey network of Scutari and Denis: from the 500 rows that come with their book, whose
published result is the same; from rows; from a table's history, as `tacit network learn` buys it;
and from a collection, whose respondents answer three columns each. Each network is compared with
the true one by the pairs of columns that differ (the structural Hamming distance), by those that
differ between the equivalence classes, which is all that tables can tell, and by links.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from benchmarks.report import Bar, progress, run, wants_quick
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import Attribute, designed_views, planned_campaign
from proxy.cli.network_tables import AnsweredSource, Asked, measured_tables
from proxy.cli.shared.client import ServerAddress
from synthesis.networks.comparison import LinkCounts, class_distance, hamming_distance
from synthesis.networks.graph import Dag, skeleton
from synthesis.networks.score import BicScore
from synthesis.networks.search import best_network, chow_liu, hill_climbed
from synthesis.networks.source import MeasuredTables, NoisyCounts, RowTables, TableSource
from tests.support import survey_network, survey_rows
from tests.support.respondents import collected
from tests.support.serving import serving
from tests.support.square_tables import TABLE, square_engine
from tests.support.survey_network import NAMES, SURVEY

N_TABLES: Final = 200
N_COLUMNS: Final = 8
N_EACH: Final = 3000  # answers to a pair
DEGREE: Final = 2
STRONG: Final = frozenset({frozenset("AE"), frozenset("RT")})


@dataclass(frozen=True)
class RareLevels:
    """Of so many tables of two independent columns, those with an arc."""

    tables: int
    ours: int
    tree: int
    fewer_rows_alone: int


@dataclass(frozen=True)
class FalseArcs:
    """Of so many networks of independent columns, those with an arc."""

    epsilon: float
    networks: int
    effective_rows: float
    collection: int
    tree: int
    as_many_rows: int


@dataclass(frozen=True)
class Learned:
    """A network beside the true one."""

    source: str
    epsilon: float | None
    effective_rows: float
    hamming_distance: int
    class_distance: int
    false_edges: int
    sensitivity: float
    specificity: float
    finds_strong_arcs: bool


def rare_levels(n_tables: int) -> RareLevels:
    """50,000 rows of independent columns, one level in twenty and one in four; Laplace noise."""
    rng = np.random.default_rng(1)
    law = np.outer([0.95, 0.05], [0.25, 0.75])
    ours = tree = fewer = 0
    for _ in range(n_tables):
        counts = (rng.multinomial(50_000, law.ravel()) + rng.laplace(0, 100, 4)).reshape(2, 2)
        score = BicScore(MeasuredTables([NoisyCounts(("a", "b"), counts, 20_000.0)]), degree=1)
        n = score.n_effective
        ours += bool(hill_climbed(score).dag.arcs)
        tree += bool(chow_liu(score).arcs)
        fewer += score.information(0, (1,)).found > math.log(n) / (2 * n)
    return RareLevels(n_tables, ours, tree, fewer)


def false_arcs(epsilon: float, n_networks: int) -> FalseArcs:
    """Of columns of two equal levels, in a collection and in rows."""
    names = [f"c{place}" for place in range(N_COLUMNS)]
    campaign = planned_campaign(
        "coins",
        tuple(Attribute(name, (0, 1)) for name in names),
        designed_views(names, 2),
        epsilon_units=int(epsilon * UNITS_PER_EPSILON),
    )
    ours = tree = rows = 0
    effective: list[float] = []
    for seed in range(n_networks):
        rng = np.random.default_rng(seed)
        codes = rng.integers(2, size=(N_EACH * len(campaign.combinations), N_COLUMNS))
        answered = collected(campaign, {name: codes[:, k] for k, name in enumerate(names)}, rng)
        score = BicScore(AnsweredSource(answered, names, width_max=2), degree=1)
        effective.append(score.n_effective)
        few = codes[: int(score.n_effective)]
        ours += bool(hill_climbed(score).dag.arcs)
        tree += bool(chow_liu(score).arcs)
        plain = BicScore(RowTables(score.columns, few), degree=1)
        rows += bool(hill_climbed(plain).dag.arcs)
    return FalseArcs(epsilon, n_networks, float(np.mean(effective)), ours, tree, rows)


def compared(source: str, epsilon: float | None, tables: TableSource) -> Learned:
    """The best network of some tables beside the Survey network."""
    score = BicScore(tables, degree=DEGREE)
    best = best_network(score)
    found = Dag(NAMES, best.arcs)  # the columns of a collection come by name
    links = LinkCounts.of(SURVEY, found)
    return Learned(
        source,
        epsilon,
        score.n_effective,
        hamming_distance(SURVEY, found),
        class_distance(SURVEY, found),
        len(skeleton(found) - skeleton(SURVEY)),
        links.sensitivity,
        links.specificity,
        skeleton(found) >= STRONG,
    )


@contextmanager
def served_history(n_rows: int) -> Iterator[ServerAddress]:
    """A server of a private table that has the shares of the Survey network."""
    sizes = dict(zip(NAMES, survey_network.joint().shape, strict=True))
    counts = np.round(survey_network.joint() * n_rows).astype(np.int64)
    with (
        TemporaryDirectory() as folder,
        square_engine(Path(folder), sizes, counts) as engine,
        serving(engine) as address,
    ):
        yield ServerAddress(address=address)


def of_history(epsilon: float, n_rows: int) -> Learned:
    """From every table of three columns, bought for an epsilon together."""
    sets = tuple(combinations(NAMES, DEGREE + 1))
    with served_history(n_rows) as server:
        tables, _, _ = measured_tables(server, Asked(TABLE, sets, str(epsilon)), progress)
    return compared("history", epsilon, tables)


def of_collection(epsilon: float, n_people: int) -> Learned:
    """From what people answer who are asked about three columns each."""
    sizes = zip(NAMES, survey_network.joint().shape, strict=True)
    campaign = planned_campaign(
        "survey",
        tuple(Attribute(name, tuple(range(size))) for name, size in sizes),
        designed_views(sorted(NAMES), DEGREE + 1, strength=DEGREE + 1),
        epsilon_units=int(epsilon * UNITS_PER_EPSILON),
    )
    codes = survey_network.sampled(n_people, 5)
    rows = {name: codes[:, place] for place, name in enumerate(NAMES)}
    answered = collected(campaign, rows, np.random.default_rng(5))
    return compared("collection", epsilon, AnsweredSource(answered, NAMES, width_max=DEGREE + 1))


def of_rows(n_rows: int) -> Learned:
    """From rows without noise."""
    rows = survey_network.sampled(n_rows, 5)
    return compared("rows", None, RowTables(survey_network.columns(), rows))


def main() -> None:
    """Measure, and print figures and bars."""
    is_quick = wants_quick(__doc__)
    n_networks, n_rows = (20, 100_000) if is_quick else (60, 400_000)
    progress("independent columns with rare levels")
    rare = rare_levels(N_TABLES)
    coins = []
    for epsilon in (1.0, 2.0, 4.0):
        progress(f"collections of independent columns at epsilon {epsilon}")
        coins.append(false_arcs(epsilon, n_networks))
    book = BicScore(
        RowTables(survey_network.columns(), survey_rows.published_rows()), degree=DEGREE
    )
    climbed = hill_climbed(book).dag
    networks = [of_rows(n_rows)]
    for epsilon in (0.1, 1.0, 10.0):
        progress(f"the Survey network from a history of epsilon {epsilon}")
        networks.append(of_history(epsilon, n_rows))
    for epsilon in (1.0, 2.0, 4.0):
        progress(f"the Survey network from a collection at epsilon {epsilon}")
        networks.append(of_collection(epsilon, 20 * n_rows))
    run(
        {
            "rare_levels": asdict(rare),
            "independent_columns": [asdict(one) for one in coins],
            "published": {
                "bic": book.total(survey_rows.FOUND),
                "distance": hamming_distance(survey_rows.FOUND, climbed),
            },
            "survey": [asdict(one) for one in networks],
        },
        list(_bars(rare, coins, hamming_distance(survey_rows.FOUND, climbed), networks)),
    )


def _bars(
    rare: RareLevels, coins: list[FalseArcs], distance: int, networks: list[Learned]
) -> Iterator[Bar]:
    most = max(rare.ours, rare.tree)
    yield Bar("arcs of 200 tables of independent columns", most, 8, most <= 8)
    for one in coins:
        most = max(one.collection, one.tree)
        odds = max(3, one.as_many_rows) / one.networks
        spread = math.sqrt(2 * one.networks * odds * (1 - odds))  # of the difference of two draws
        allowed = one.as_many_rows + 3 * spread
        name = f"false networks of {one.networks} collections at epsilon {one.epsilon:g}"
        yield Bar(f"{name}, beside rows", most, allowed, most <= allowed)
    yield Bar("arcs that differ from the published network", distance, 0, distance == 0)
    false = max(one.false_edges for one in networks)
    yield Bar("edges that the Survey network has not", false, 2, false <= 2)
    last = [one for one in networks if one.source != "rows"]
    strongest = min(one.finds_strong_arcs for one in last if one.epsilon in {4.0, 10.0})
    yield Bar("strong arcs found at the largest epsilon", float(strongest), 1, strongest)


if __name__ == "__main__":
    main()
