# ruff: noqa: S608 - statements of analysts, made of numbers
"""What large tables take: post codes, twenty years of days, hundreds of columns, many tables.

    python -m benchmarks.size [--quick]

Each kind of table is served at a size and at ten times it, in processes of their own, and the same
statements are asked of both: for the first time, when they are paid, and again. What counts is the
processor time of a start and of each answer, and the largest memory. A step is worse than linear if
ten times the size takes more than ten times as long, and a fifth more for what a machine's times
vary by; what takes a few milliseconds counts as five.
"""

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from threadpoolctl import threadpool_limits

from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.synthesis_runs import peak_mb
from proxy.api.requests import QueryRequest
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs

SEED: Final = 20
TIMES_LARGER: Final = 10
TIMES_AS_LONG_MAX: Final = 1.2 * TIMES_LARGER
N_ROWS: Final = 100_000
COMPARED_FROM_MS: Final = 5.0
FIRST_DAY: Final = np.datetime64("2006-01-01")
YEAR: Final = "EXTRACT(YEAR FROM day) AS y"
WIDE: Final = "WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 300000, confidence => 0.95)"
N_LEVELS_OF_MANY: Final = 20
HEAD: Final = """
[server]
listen = "127.0.0.1:0"
allow_anonymous = true
[ledger]
path = "size.ledger"
"""
TABLE: Final = """
[tables.{name}]
source = "{name}.parquet"
budget = "1000"
n_records_max = 1000000
half_width = 500
confidence = 0.95
"""


@dataclass(frozen=True)
class Kind:
    """A way to be large.

    Parameters
    ----------
    size : int
        The larger of the two sizes that are measured.
    write : callable
        Writes the configuration and the data of a size into a folder.
    statements : mapping of str to sequence of str
        By what they show, those that are asked one after the other at that size.
    """

    size: int
    write: Callable[[Path, int], None]
    statements: Callable[[int], Mapping[str, Sequence[str]]]


def main() -> None:
    """Run the benchmark and print its report."""
    is_quick = wants_quick("What large tables take.")
    kinds = {name: kind for name, kind in KINDS.items() if not is_quick or name in QUICK}
    figures: dict[str, dict[str, dict[str, float]]] = {}
    bars: list[Bar] = []
    for name, kind in kinds.items():
        sizes = (kind.size // TIMES_LARGER, kind.size)
        found = {size: in_own_process(name, size) for size in sizes}
        figures[name] = {str(size): steps for size, steps in found.items()}
        progress(f"{name}: {figures[name]}")
        bars += compared(name, *(found[size] for size in sizes))
    run(figures, bars)


def compared(name: str, small: Mapping[str, float], large: Mapping[str, float]) -> list[Bar]:
    """The claim that no step takes more than so many times as long, of what can be told."""
    times = {
        step: took / max(small[step], COMPARED_FROM_MS)
        for step, took in large.items()
        if step.endswith("cpu_ms")
    }
    return [
        Bar(f"{name}: {step}, for that of a tenth", value, TIMES_AS_LONG_MAX,
            value <= TIMES_AS_LONG_MAX)
        for step, value in times.items()
    ]  # fmt: skip


def in_own_process(name: str, size: int) -> dict[str, float]:
    """What a kind takes at a size: its memory is that of nothing else."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(measured, name, size).result()


def measured(name: str, size: int) -> dict[str, float]:
    """Processor milliseconds of each step, and the largest memory in MB."""
    threadpool_limits(limits=1)
    configure_logs()  # to standard error
    kind, took = KINDS[name], {}
    with TemporaryDirectory(prefix="tacit-size-") as folder:
        kind.write(Path(folder), size)
        began = time.process_time()
        service = build(load(Path(folder) / "tacit.toml"))
        took["start, cpu_ms"] = 1000 * (time.process_time() - began)
        try:
            for shows, asked in kind.statements(size).items():
                for time_asked in ("first", "again"):
                    began = time.process_time()
                    for sql in asked:
                        service.engine.answer(QueryRequest(sql=sql))
                    spent = 1000 * (time.process_time() - began)
                    took[f"{shows}, {time_asked}, cpu_ms"] = spent / len(asked)
        finally:
            service.close()
    return {**{step: round(value, 1) for step, value in took.items()}, "peak_mb": peak_mb()}


def write_codes(folder: Path, n_codes: int) -> None:
    """One column of post codes, which a public file lists, and one of a few levels."""
    rng = np.random.default_rng(SEED)
    codes = np.array([f"{code:06d}" for code in range(n_codes)])
    csv.write_csv(pa.table({"code": pa.array(codes)}), folder / "codes.csv")
    # Some are common, and most are rare, as towns are.
    drawn = codes[np.minimum(rng.geometric(30 / n_codes, N_ROWS), n_codes) - 1]
    rows = {"code": drawn, "plan": rng.integers(0, 4, N_ROWS)}
    parquet.write_table(pa.table(rows), folder / "people.parquet")
    (folder / "tacit.toml").write_text(
        HEAD + TABLE.format(name="people")
        + '[tables.people.columns.code]\nkind = "category"\nlevels_from = "codes.csv:code"\n'
        + '[tables.people.columns.plan]\nkind = "integer"\nlow = 0\nhigh = 3\n'
    )  # fmt: skip


def about_codes(n_codes: int) -> Mapping[str, Sequence[str]]:
    """One code, some codes, codes by their beginning, and all of them."""
    code = f"{n_codes // 3:06d}"
    some = ", ".join(f"'{code:06d}'" for code in range(0, n_codes, n_codes // 50))
    return {
        "one code": [f"SELECT COUNT(*) FROM people WHERE code = '{code}'"],
        "fifty codes": [f"SELECT COUNT(*) FROM people WHERE code IN ({some})"],
        "a beginning": ["SELECT plan, COUNT(*) FROM people WHERE code LIKE '00%' GROUP BY plan"],
        "every code": ["SELECT code, COUNT(*) FROM people GROUP BY code"],
    }


def write_days(folder: Path, n_days: int) -> None:
    """One column of days."""
    rng = np.random.default_rng(SEED)
    rows = {"day": FIRST_DAY + rng.integers(0, n_days, N_ROWS), "amount": rng.random(N_ROWS) * 500}
    parquet.write_table(pa.table(rows), folder / "sales.parquet")
    (folder / "tacit.toml").write_text(
        HEAD + TABLE.format(name="sales")
        + f'[tables.sales.columns.day]\nkind = "date"\nlow = {FIRST_DAY}\n'
        + f"high = {FIRST_DAY + n_days - 1}\n"
        + '[tables.sales.columns.amount]\nkind = "measure"\nlow = 0\nhigh = 500\nstep = 0.01\n'
    )  # fmt: skip


def about_days(n_days: int) -> Mapping[str, Sequence[str]]:
    """A range, months, days, and sums by year."""
    end = FIRST_DAY + n_days // 2
    return {
        "half of the days": [f"SELECT COUNT(*) FROM sales WHERE day < DATE '{end}'"],
        "by month": [
            f"SELECT {YEAR}, EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM sales GROUP BY y, m"
        ],
        "every day": ["SELECT day, COUNT(*) FROM sales GROUP BY day"],
        "sums by year": [f"SELECT {WIDE} {YEAR}, SUM(amount) FROM sales GROUP BY y"],
    }


def write_columns(folder: Path, n_columns: int) -> None:
    """Columns of numbers, cut at edges."""
    rng = np.random.default_rng(SEED)
    rows = {f"c{place}": rng.random(N_ROWS) for place in range(n_columns)}
    parquet.write_table(pa.table(rows), folder / "wide.parquet")
    edges = [round(place / N_LEVELS_OF_MANY, 3) for place in range(N_LEVELS_OF_MANY + 1)]
    columns = (
        f'[tables.wide.columns.{name}]\nkind = "numeric"\nedges = {edges}\n' for name in rows
    )
    (folder / "tacit.toml").write_text(HEAD + TABLE.format(name="wide") + "".join(columns))


def about_columns(n_columns: int) -> Mapping[str, Sequence[str]]:
    """A few columns of all; and every one by itself."""
    each = [f"SELECT COUNT(*) FROM wide WHERE c{place} < 0.5" for place in range(n_columns)]
    return {
        "three columns": ["SELECT COUNT(*) FROM wide WHERE c0 < 0.5 AND c1 < 0.3 AND c2 >= 0.1"],
        "each column": each,
    }


def write_tables(folder: Path, n_tables: int) -> None:
    """Tables of ten columns."""
    rng = np.random.default_rng(SEED)
    text = HEAD
    for number in range(n_tables):
        name = f"t{number}"
        rows = {f"c{place}": rng.integers(0, N_LEVELS_OF_MANY, N_ROWS) for place in range(10)}
        parquet.write_table(pa.table(rows), folder / f"{name}.parquet")
        text += TABLE.format(name=name) + "".join(
            f'[tables.{name}.columns.{column}]\nkind = "integer"\nlow = 0\n'
            f"high = {N_LEVELS_OF_MANY - 1}\n"
            for column in rows
        )
    (folder / "tacit.toml").write_text(text)


def about_tables(n_tables: int) -> Mapping[str, Sequence[str]]:
    """The same of each table."""
    return {
        "of each table": [
            f"SELECT c0, COUNT(*) FROM t{number} WHERE c1 < 10 GROUP BY c0"
            for number in range(n_tables)
        ],
        "of one table": ["SELECT c2, COUNT(*) FROM t0 GROUP BY c2"],
    }


KINDS: Final = {
    "post codes": Kind(100_000, write_codes, about_codes),
    "days": Kind(7_300, write_days, about_days),
    "columns": Kind(300, write_columns, about_columns),
    "tables": Kind(20, write_tables, about_tables),
}
QUICK: Final = {"days", "tables"}

if __name__ == "__main__":
    main()
