"""Bounds that fit the statement, on the predicates of TPC-H: what they save, and what they lose.

    python -m benchmarks.tpch_bounds [--quick]

Lines of orders with the customer as the unit, made by the generator `tpchgen-cli` (scale 1; .1 with
``--quick``), with a column for each predicate of the official queries. A sum or a count is asked
for each with ``rows_per_unit => 'auto'``:

    price       the median, for 10 % of itself at 95 %, the sizes of units among it, beside Laplace
                noise of the customer that adds most, which nobody may know: at most 4 times; and
                beside the bound that the owner declared, of 200 rows
    error       at epsilon 1, all of it spent: the median distance from the truth of all rows,
                beside that of R2T (Dong et al., SIGMOD 2022, simulated 200 times with a bound of
                2**24 for money and 2**8 for counts, about what Tacit is told). Rows that are
                left out count as errors

A predicate has no bar for that if both are off by more than half.
"""

import math
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, progress, run, wants_quick
from cube.refusals import Refused
from proxy.api import LOCAL, QueryRequest
from proxy.bootstrap import Service, build
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs

TABLES: Final = "lineitem,orders,customer,supplier,nation,region,part"
ROWS_MAX: Final = 200  # no customer has more, so that nothing is left out by the table's own bound
MONEY: Final = "money"
LINES: Final = "1"
Q3: Final = "segment = 'BUILDING' AND ordered < '1995-03-15' AND shipped > '1995-03-15'"
Q12: Final = """mode = 'MAIL' AND year(received) = 1994 AND committed < received
  AND shipped < committed AND priority NOT IN ('1-URGENT', '2-HIGH')"""
Q19: Final = """mode IN ('AIR', 'AIR REG') AND instruct = 'DELIVER IN PERSON' AND (
  brand = 'Brand#12' AND container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
    AND quantity BETWEEN 1 AND 11 AND size BETWEEN 1 AND 5
  OR brand = 'Brand#23' AND container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
    AND quantity BETWEEN 10 AND 20 AND size BETWEEN 1 AND 10
  OR brand = 'Brand#34' AND container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
    AND quantity BETWEEN 20 AND 30 AND size BETWEEN 1 AND 15)"""
PREDICATES: Final = {
    "Q3 total": (MONEY, Q3),
    "Q3 count": (LINES, Q3),
    "Q5": (MONEY, "buyer = 'INDIA' AND seller = 'INDIA' AND year(ordered) = 1994"),
    "Q6": (
        MONEY,
        "year(shipped) = 1994 AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24",
    ),
    "Q7": (MONEY, "seller = 'FRANCE' AND buyer = 'GERMANY' AND year(shipped) = 1995"),
    "Q8": (
        MONEY,
        "region = 'AMERICA' AND type = 'ECONOMY ANODIZED STEEL' AND year(ordered) IN (1995, 1996)",
    ),
    "Q10": (
        MONEY,
        "returned = 'R' AND buyer = 'INDIA' AND ordered BETWEEN '1993-10-01' AND '1993-12-31'",
    ),
    "Q12": (LINES, Q12),
    "Q14": (MONEY, "shipped BETWEEN '1995-09-01' AND '1995-09-30'"),
    "Q17": (
        MONEY,
        "brand = 'Brand#23' AND container = 'MED BOX' AND quantity < 0.2 * usual_quantity",
    ),
    "Q19": (MONEY, Q19),
}
JOINED: Final = """
SELECT o_custkey AS customer, c_mktsegment AS segment, o_orderdate AS ordered,
  l_shipdate AS shipped, l_receiptdate AS received, l_commitdate AS committed,
  b.n_name AS buyer, s.n_name AS seller, r_name AS region, l_discount AS discount,
  l_quantity AS quantity, l_returnflag AS returned, l_shipmode AS mode,
  l_shipinstruct AS instruct, o_orderpriority AS priority, p_brand AS brand,
  p_container AS container, p_type AS type, p_size AS size,
  avg(l_quantity) OVER (PARTITION BY l_partkey) AS usual_quantity,
  CAST(round(l_extendedprice * (1 - l_discount)) AS INTEGER) AS money
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
  JOIN nation b ON c_nationkey = b.n_nationkey JOIN region ON b.n_regionkey = r_regionkey
  JOIN supplier ON l_suppkey = s_suppkey JOIN nation s ON s_nationkey = s.n_nationkey
  JOIN part ON l_partkey = p_partkey
"""
MONEY_MAX: Final = 105_000
CONFIGURATION: Final = f"""[ledger]
path = "lines.ledger"
[tables.lines]
source = "lines.parquet"
unit = "customer"
rows_per_unit_max = {ROWS_MAX}
budget = "1000"
n_records_max = 10000000
half_width = 1
default_cost = "1"
[tables.lines.columns.money]
kind = "measure"
low = 0
high = {MONEY_MAX}
step = 1
half_width = 1
"""
SHARE: Final = 0.1
TIMES_MAX: Final = 4.0
NOTHING: Final = 0.5  # of the truth: such an error says nothing
BOUND_OF_R2T: Final = {MONEY: 24, LINES: 8}
N_RUNS_OF_R2T: Final = 200


@dataclass(frozen=True)
class Case:
    """One predicate: what it adds up, and what each customer adds."""

    name: str
    summed: str
    sizes: NDArray[np.float64]

    @property
    def truth(self) -> float:
        """Of all rows."""
        return float(self.sizes.sum())

    @property
    def flag(self) -> str:
        """The column that says whether a line is in it."""
        return self.name.split()[0].lower()

    def asked(self, options: str) -> str:
        """The statement."""
        what = "COUNT(*)" if self.summed == LINES else "SUM(money)"
        return (
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}, rows_per_unit => 'auto') "  # noqa: S608 - from above
            f"{what} AS n FROM lines WHERE {self.flag}"
        )

    @property
    def exact_price(self) -> float:
        """For the target with noise of the customer that adds most."""
        return -math.log(0.05) / (SHARE * self.truth) * float(self.sizes.max())

    @property
    def declared_price(self) -> float:
        """The same for what the table allows a customer."""
        largest = 1 if self.summed == LINES else MONEY_MAX
        return -math.log(0.05) / (SHARE * self.truth) * ROWS_MAX * largest

    def error_of_r2t(self, draw: np.random.Generator) -> float:
        """The median error at epsilon 1, with the parameters of its paper (beta .1)."""
        n_bounds = BOUND_OF_R2T[self.summed]
        errors = []
        for _ in range(N_RUNS_OF_R2T):
            best = 0.0
            for place in range(1, n_bounds + 1):
                bound = 2.0**place
                cut = float(np.minimum(self.sizes, bound).sum())
                noisy = cut + float(draw.laplace(0.0, n_bounds * bound))
                best = max(best, noisy - n_bounds * math.log(n_bounds / 0.1) * bound)
            errors.append(abs(best - self.truth))
        return float(np.median(errors))


def main() -> None:
    """Run the benchmark and print its report."""
    is_quick = wants_quick(__doc__ or "")
    scale, n_ledgers = (0.1, 5) if is_quick else (1, 3)
    draw = np.random.default_rng(3)
    with TemporaryDirectory(prefix="tacit-bench-") as name:
        folder = Path(name)
        cases = written(folder, scale)
        progress("tables are written")
        prices: dict[str, list[float]] = {case.name: [] for case in cases}
        errors: dict[str, list[float]] = {case.name: [] for case in cases}
        for number in range(n_ledgers):
            with served(folder, f"prices {number}") as service:
                for case in cases:
                    prices[case.name].append(price_of(service, case))
            with served(folder, f"errors {number}") as service:
                for case in cases:
                    errors[case.name].append(asked_at_one(service, case))
            progress(f"ledgers {number + 1} of {n_ledgers}")
    figures, bars = {}, []
    for case in cases:
        of_r2t, own = case.error_of_r2t(draw), float(np.median(errors[case.name]))
        price = float(np.median(prices[case.name]))
        times = price / case.exact_price
        figures[case.name] = {
            "truth": case.truth,
            "largest_share_of_a_customer": float(case.sizes.max()) / case.truth,
            "price": price,
            "price_with_an_exact_bound": case.exact_price,
            "price_with_the_declared_bound": case.declared_price,
            "error_at_1": own / case.truth,
            "error_of_r2t_at_1": of_r2t / case.truth,
        }
        title = f"{case.name}: price beside that of an exact bound, times"
        bars.append(Bar(title, times, TIMES_MAX, times <= TIMES_MAX))
        if min(own, of_r2t) <= NOTHING * case.truth:
            title = f"{case.name}: error at epsilon 1 beside R2T's, times"
            bars.append(Bar(title, own / of_r2t, 1.0, own <= of_r2t))
    run({"scale": scale, "n_ledgers": n_ledgers, "predicates": figures}, bars)


def written(folder: Path, scale: float) -> list[Case]:
    """Write the lines with a column for each predicate; the predicates."""
    generator = shutil.which("tpchgen-cli")
    if generator is None:
        raise RuntimeError("tpchgen-cli is missing: install the extra bench")
    wanted = ("-s", str(scale), f"--tables={TABLES}", f"--output-dir={folder}")
    subprocess.run([generator, "parquet", *wanted], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own words
    flags = {name.split()[0].lower(): text for name, (_, text) in PREDICATES.items()}
    listed = ", ".join(f"coalesce({text}, false) AS {name}" for name, text in flags.items())
    found = []
    with duckdb.connect() as connection:
        for table in TABLES.split(","):
            connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")
        connection.execute(
            f"CREATE TABLE lines AS SELECT customer, money, {listed} FROM ({JOINED})"  # noqa: S608 - texts from above
        )
        connection.execute(f"COPY lines TO '{folder}/lines.parquet'")
        for name, (summed, _) in PREDICATES.items():
            flag = name.split()[0].lower()
            sql = f"SELECT sum({summed}) AS n FROM lines WHERE {flag} GROUP BY customer"  # noqa: S608 - names from above
            sizes = connection.sql(sql).fetchnumpy()["n"]
            found.append(Case(name, summed, np.asarray(sizes, dtype=np.float64)))
    return found


@contextmanager
def served(folder: Path, name: str) -> Iterator[Service]:
    """The table, with a ledger of its own."""
    flags = dict.fromkeys(one.split()[0].lower() for one in PREDICATES)
    columns = "".join(f'[tables.lines.columns.{one}]\nkind = "boolean"\n' for one in flags)
    text = CONFIGURATION.replace("lines.ledger", f"{name}.ledger") + columns
    (folder / f"{name}.toml").write_text(text)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        configure_logs(nowhere)  # a large purchase is logged
        service = build(load(folder / f"{name}.toml"))
        try:
            yield service
        finally:
            service.close()


def asked_at_one(service: Service, case: Case) -> float:
    """The error of an answer at epsilon 1."""
    request = QueryRequest(sql=case.asked("epsilon => 1"), caller=LOCAL)
    (row,) = service.engine.answer(request).data.to_pylist()
    return abs(float(row["n"]) - case.truth)


def price_of(service: Service, case: Case) -> float:
    """What the target costs in all, the sizes among it."""
    before = sum(one.spent for one in service.budgets())
    options = f"relative => {SHARE}, at_least => {SHARE * case.truth:.0f}"
    try:
        service.engine.answer(QueryRequest(sql=case.asked(options), caller=LOCAL))
    except Refused as refusal:
        progress(f"{case.name}: {refusal.message}")
        return math.inf
    return float(sum(one.spent for one in service.budgets()) - before)


if __name__ == "__main__":
    main()
