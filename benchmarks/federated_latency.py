"""How long a federated table takes, beside a table of the same rows that is served here.

    python -m benchmarks.federated_latency [--quick]

Three hospitals on this machine and a coordinator, each a ``tacit serve`` process. The coordinator
serves the federated table, and beside it a local table of all the rows. Random counts are asked of
both through ADBC, in pairs, either first by turns; an answer is timed from ``execute`` to the
fetched table. First all of them are bought; then answers that the history has are asked again in
the same and in other words.

A share of medians is given with what it varies by: the central 95 % of the same share over pairs
that are drawn again (10**3 times).
"""

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_flightsql.dbapi as flight_sql
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from accountant.ledger.credentials import Role
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.serve_latency import FREE_KINDS, TARGET, ask, summary
from examples.adult.demo import serving
from examples.hospitals.demo import issued
from examples.hospitals.patients import (
    AGES,
    DECLARED,
    HOSPITALS,
    TABLE,
    WARDS,
    coordinator_config,
    holder_config,
)
from proxy.identity.issuing import Grant

LOCAL = "local"
BUDGET = "4096"
WARM_UP = 10
FREE_SHARE_MAX = 1.25
BOUGHT_TIMES_MAX = 2.0
BOUGHT_MORE_MS_MAX = 20.0
WIDEST, NARROWER = 300.0, 0.99  # half-widths: or the history would soon know everything
N_DRAWN_AGAIN = 1000
Draw = Callable[[np.random.Generator], str]
PREDICATES: tuple[Draw, ...] = (
    lambda draw: f"days BETWEEN {(low := int(draw.integers(1, 8)))} AND {low + 5}",
    lambda draw: f"age IN ('80+', '{draw.choice(AGES[:4])}')",
    lambda draw: f"ward = '{draw.choice(WARDS)}'",
    lambda draw: f"sex = '{draw.choice(['female', 'male'])}'",
    lambda draw: f"smoker = '{draw.choice(['no', 'yes'])}'",
)
Pairs = list[tuple[float, float]]  # milliseconds of the federated and of the local table


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick(__doc__ or "")
    n_bought, n_free = (60, 200) if quick else (200, 1000)
    draw = np.random.default_rng(11)
    with TemporaryDirectory(prefix="tacit-bench-") as folder, served(Path(folder)) as connection:
        progress("bought answers")
        asked, bought = buy(connection, n_bought, draw)
        progress("free answers")
        free = ask_free(connection, asked, n_free, draw)
    of_free = share_of_medians(free, draw)
    of_bought = share_of_medians(bought, draw)
    federated, local = (statistics.median(times) for times in zip(*bought, strict=True))
    allowed = BOUGHT_TIMES_MAX * local + BOUGHT_MORE_MS_MAX
    figures = {
        "n_bought": len(bought),
        "n_free": len(free),
        "bought_ms": both(bought),
        "free_ms": both(free),
        "bought_share": of_bought,
        "free_share": of_free,
    }
    bars = [
        Bar("free answer beside a local one, medians, times", of_free["share"], FREE_SHARE_MAX,
            of_free["share"] <= FREE_SHARE_MAX),
        Bar("bought answer of 3 local holders, ms; at most 2 times a local one + 20", federated,
            allowed, federated <= allowed),
    ]  # fmt: skip
    run(figures, bars)


@contextmanager
def served(folder: Path) -> Iterator[flight_sql.Connection]:
    """A connection to the coordinator of three hospitals, which has a local table, too."""
    draw = np.random.default_rng(7)
    with ExitStack() as stack:
        addresses, tokens, parts = {}, {}, []
        for hospital in HOSPITALS:
            config = holder_config(folder / hospital.name, hospital, draw)
            config.write_text(with_budget(config.read_text()))
            addresses[hospital.name] = stack.enter_context(serving(config))
            grant = Grant(analyst="coordinator", role=Role.FEDERATION, tables=(TABLE,))
            tokens[hospital.name] = issued(config, grant)
            parts.append(csv.read_csv(config.with_name("patients.csv")))
        config = coordinator_config(folder / "coordinator", addresses, tokens)
        csv.write_csv(pa.concat_tables(parts), config.with_name("all.csv"))
        local = DECLARED.replace(f"tables.{TABLE}.", f"tables.{LOCAL}.")
        text = f'{config.read_text()}\n[tables.{LOCAL}]\nsource = "all.csv"{local}'
        text = with_budget(text.replace("[server]", "[server]\nallow_anonymous = true"))
        config.write_text(text)
        address = stack.enter_context(serving(config))
        yield stack.enter_context(flight_sql.connect(f"grpc://{address}", autocommit=True))


def with_budget(text: str) -> str:
    """A configuration whose tables have budget enough."""
    return re.sub(r"(?m)^budget = .*$", f'budget = "{BUDGET}"', text)


def buy(
    connection: flight_sql.Connection, n_bought: int, draw: np.random.Generator
) -> tuple[list[str], Pairs]:
    """Ask new questions of both tables; those that cost something on both, with their times."""
    asked: list[str] = []
    times: Pairs = []
    width = WIDEST
    while len(times) < n_bought + WARM_UP:
        width *= NARROWER
        sql = question(draw, half_width=width)
        found = pair(connection, sql, draw)
        if all(epsilon > 0 for _, epsilon in found):
            asked.append(sql)
            times.append((found[0][0], found[1][0]))
    return asked, times[WARM_UP:]


def ask_free(
    connection: flight_sql.Connection, asked: Sequence[str], n_free: int, draw: np.random.Generator
) -> Pairs:
    """Ask what is known, of both tables, in three ways; the times."""
    times: Pairs = []
    kinds = list(FREE_KINDS.values())
    for place in range(n_free + WARM_UP):
        sql = kinds[place % len(kinds)](asked[int(draw.integers(len(asked)))], draw)
        found = pair(connection, sql, draw)
        if any(epsilon for _, epsilon in found):
            raise RuntimeError(f"not free: {sql}")
        times.append((found[0][0], found[1][0]))
    return times[WARM_UP:]


def question(draw: np.random.Generator, *, half_width: float) -> str:
    """A random count of one to three predicates, one in five by group."""
    chosen = draw.choice(len(PREDICATES), size=int(draw.integers(1, 4)), replace=False)
    where = " AND ".join(PREDICATES[place](draw) for place in chosen)
    select = TARGET.format(half_width=f"{half_width:.3f}")
    if draw.random() < 1 / 5 and 2 not in chosen:
        return f"{select} ward, COUNT(*) AS n FROM {TABLE} WHERE {where} GROUP BY ward"
    return f"{select} COUNT(*) AS n FROM {TABLE} WHERE {where}"


def pair(
    connection: flight_sql.Connection, sql: str, draw: np.random.Generator
) -> list[tuple[float, float]]:
    """The milliseconds and the epsilon of a statement on the federated table and on the local."""
    found: dict[str, tuple[float, float]] = {}
    for table in draw.permutation([TABLE, LOCAL]):
        milliseconds, receipt = ask(connection, sql.replace(f"FROM {TABLE}", f"FROM {table}"))
        found[str(table)] = milliseconds, float(receipt["epsilon_spent"])  # type: ignore[arg-type]  # a number
    return [found[TABLE], found[LOCAL]]


def both(times: Pairs) -> dict[str, dict[str, float]]:
    """Summaries of both tables."""
    federated, local = zip(*times, strict=True)
    return {"federated": summary(list(federated)), "local": summary(list(local))}


def share_of_medians(times: Pairs, draw: np.random.Generator) -> dict[str, float]:
    """The median of the federated table over that of the local one, and what it varies by."""
    found = np.array(times)
    drawn = [
        _share(found[draw.integers(len(found), size=len(found))]) for _ in range(N_DRAWN_AGAIN)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return {"share": _share(found), "low": float(low), "high": float(high)}


def _share(times: NDArray[np.float64]) -> float:
    federated, local = np.median(times, axis=0)
    return float(federated / local)


if __name__ == "__main__":
    main()
