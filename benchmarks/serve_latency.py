"""How long free answers and refusals take through a real client: ADBC and Flight SQL.

The Adult table is served by ``tacit serve``. Counts over one to four random columns are bought
until the history holds 200 rows; then answers that the history already determines are timed from
``execute``, on a fresh cursor, to the fetched table: earlier queries repeated, the same in other
words, and new queries (a multiple, another confidence). Every timed answer is checked to have cost
nothing. Last, further questions are asked in turn for what they cost, and under a cap that is too
small for them: a refusal looks for what would fit, and may take no longer than an answer.
"""

import json
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_flightsql.dbapi as flight_sql
import numpy as np

from benchmarks.report import Bar, progress, run, wants_quick
from examples.adult.demo import prepare, serving

N_HISTORY_ROWS = 200
P95_MS_MAX = 10.0
REFUSAL_SHARE_MAX = 1.0  # of the time of an answer that is paid for, at the 95th percentile
TOO_SMALL = "1e-7"  # epsilon
TARGET = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => {half_width}, confidence => 0.95)"
GROUPED = ("sex", "race", "marital_status", "relationship", "income")
Draw = Callable[[np.random.Generator], str]
PREDICATES: dict[str, Draw] = {
    "age": lambda draw: f"age BETWEEN {(low := int(draw.integers(17, 80)))} AND {low + 10}",
    "hours_per_week": lambda draw: f"hours_per_week >= {int(draw.integers(10, 70))}",
    "education_num": lambda draw: f"education_num > {int(draw.integers(3, 14))}",
    "sex": lambda draw: f"sex = '{draw.choice(['Male', 'Female'])}'",
    "income": lambda _: "income = '>50K'",
    "race": lambda draw: f"race IN ('White', '{draw.choice(['Black', 'Other'])}')",
}


FREE_KINDS: dict[str, Callable[[str, np.random.Generator], str]] = {
    "again": lambda sql, _: sql,
    "in_other_words": lambda sql, _: sql.replace("COUNT(*)", "SUM(CASE WHEN TRUE THEN 1 END)"),
    "never_asked": lambda sql, draw: sql.replace("COUNT(*)", "COUNT(*) / 2.0 + 1").replace(
        "confidence => 0.95", f"confidence => {draw.uniform(0.5, 0.9):.6f}"
    ),
}


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick(__doc__ or "")
    n_timed, n_refused = (200, 40) if quick else (1000, 200)
    draw = np.random.default_rng(7)
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        config = prepare(Path(folder))
        text = re.sub(r"(?m)^budget = .*$", 'budget = "100"', config.read_text())
        config.write_text(text.replace("allow_anonymous = false", "allow_anonymous = true"))
        with (
            serving(config) as address,
            flight_sql.connect(f"grpc://{address}", autocommit=True) as connection,
        ):
            bought, paid_ms = buy_history(connection, draw)
            progress(f"bought {N_HISTORY_ROWS} rows with {len(bought)} questions")
            timed = [
                (kind, timed_free(connection, sql))
                for kind, sql in free_questions(bought, n_timed, draw)
            ]
            progress("refusals")
            refused_ms, answered_ms = timed_refusals(connection, n_refused, draw)
    free_ms = [milliseconds for _, milliseconds in timed]
    p95 = float(np.percentile(free_ms, 95))
    figures = {
        "n_history_rows": N_HISTORY_ROWS,
        "n_timed": n_timed,
        "free_ms": summary(free_ms),
        "free_ms_by_kind": {
            name: summary([milliseconds for kind, milliseconds in timed if kind == name])
            for name in FREE_KINDS
        },
        "paid_ms": summary(paid_ms),
        "refused_ms": summary(refused_ms),
        "paid_beside_refused_ms": summary(answered_ms),
    }
    share = summary(refused_ms)["p95"] / summary(answered_ms)["p95"]
    bars = [
        Bar("free answer through ADBC, p95 ms", p95, P95_MS_MAX, p95 <= P95_MS_MAX),
        Bar("refusal beside an answer that is paid for, p95 over p95", share,
            REFUSAL_SHARE_MAX, share <= REFUSAL_SHARE_MAX),
    ]  # fmt: skip
    run(figures, bars)


def buy_history(
    connection: flight_sql.Connection, draw: np.random.Generator
) -> tuple[list[str], list[float]]:
    """Ask random questions until the history holds enough rows; the questions and their times."""
    bought: list[str] = []
    paid_ms: list[float] = []
    n_rows = 0
    while n_rows < N_HISTORY_ROWS:
        sql = drawn(draw, half_width=400)
        milliseconds, receipt = ask(connection, sql)
        if receipt["epsilon_spent"]:
            n_rows += len(receipt["columns"][0]["low"])
            bought.append(sql)
            paid_ms.append(milliseconds)
    return bought, paid_ms


def timed_refusals(
    connection: flight_sql.Connection, n_refused: int, draw: np.random.Generator
) -> tuple[list[float], list[float]]:
    """The milliseconds of refusals, and of answers to as many questions that are paid for."""
    refused_ms: list[float] = []
    paid_ms: list[float] = []
    while len(paid_ms) < n_refused:
        sql = drawn(draw, half_width=150)
        if len(refused_ms) > len(paid_ms):
            milliseconds, receipt = ask(connection, sql)
            paid_ms += [milliseconds] if receipt["epsilon_spent"] else []
            continue
        start = time.perf_counter()
        try:
            ask(connection, sql.replace("OPTIONS(", f"OPTIONS(epsilon => {TOO_SMALL}, "))
        except flight_sql.Error:  # what the history knows is answered under any cap
            refused_ms.append(1000 * (time.perf_counter() - start))
    return refused_ms, paid_ms


def drawn(draw: np.random.Generator, *, half_width: int) -> str:
    """A random count over one to four columns, one in ten by group."""
    columns = draw.choice(list(PREDICATES), size=int(draw.integers(1, 5)), replace=False)
    where = " AND ".join(PREDICATES[name](draw) for name in columns)
    keys = [key for key in GROUPED if key not in columns]
    key = str(draw.choice(keys)) if draw.random() < 0.1 and keys else None
    return question(f"FROM adult WHERE {where}", key, half_width=half_width)


def question(rest: str, key: str | None, *, half_width: int) -> str:
    """One count, perhaps by group."""
    select = TARGET.format(half_width=half_width)
    if key is None:
        return f"{select} COUNT(*) AS n {rest}"
    return f"{select} {key}, COUNT(*) AS n {rest} GROUP BY {key}"


def free_questions(
    bought: list[str], n_timed: int, draw: np.random.Generator
) -> list[tuple[str, str]]:
    """Questions the history answers, with their kind; a third of each."""
    kinds = list(FREE_KINDS)
    chosen = []
    for place in range(n_timed):
        sql = bought[int(draw.integers(len(bought)))]
        kind = kinds[place % len(kinds)]
        chosen.append((kind, FREE_KINDS[kind](sql, draw)))
    return chosen


def timed_free(connection: flight_sql.Connection, sql: str) -> float:
    """The milliseconds a free answer took; an answer that cost something is an error."""
    milliseconds, receipt = ask(connection, sql)
    if receipt["epsilon_spent"]:
        raise RuntimeError(f"not free: {sql}")
    return milliseconds


def ask(
    connection: flight_sql.Connection, sql: str
) -> tuple[float, dict[str, list[dict[str, list[float]]]]]:
    """Execute and fetch; the milliseconds it took and the receipt."""
    with connection.cursor() as cursor:
        start = time.perf_counter()
        cursor.execute(sql)
        table = cursor.fetch_arrow_table()
        milliseconds = 1000 * (time.perf_counter() - start)
    return milliseconds, json.loads(table.schema.metadata[b"tacit.receipt"])


def summary(times_ms: list[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum."""
    return {
        "median": statistics.median(times_ms),
        "p95": float(np.percentile(times_ms, 95)),
        "max": max(times_ms),
    }


if __name__ == "__main__":
    main()
