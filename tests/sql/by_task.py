"""SQL by task, with real answers, as Markdown: `python -m tests.sql.by_task`.

The statements are asked of the Adult table through a server and `tacit_client`, in the order of the
page, with a ledger of their own. Noise is the system's, so that numbers differ at each build.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import tacit_client
from proxy.bootstrap import build
from proxy.config.settings import load
from tests.support.serving import serving

ADULT = Path(__file__).resolve().parents[2] / "examples" / "adult"
ROWS_MAX = 8  # of an answer; the page says how many are left out

INTRODUCTION = (
    "Statements that analysts write, and what they are told. Each was asked when this page was "
    "built, one after the other, of the 48,842 people of the Adult table with a budget of 1. "
    "[The SQL that is answered](../sql.md) has every function and rule."
)


class Task(NamedTuple):
    """A thing that an analyst wants, the statement, and what to know about the answer."""

    title: str
    sql: str
    remark: str


SECTIONS: dict[str, tuple[Task, ...]] = {
    "Count": (
        Task(
            "Everybody, to within 200",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 200) COUNT(*) AS people "
            "FROM adult",
            "Without `OPTIONS` the accuracy is what the table's default cost pays for.",
        ),
        Task(
            "Groups",
            "SELECT marital_status, COUNT(*) AS people FROM adult GROUP BY marital_status "
            "ORDER BY people DESC",
            "All groups together cost what one costs: a person is in one of them. Every declared "
            "group is shown, also an empty one.",
        ),
        Task(
            "A group that is known already",
            "SELECT COUNT(*) AS divorced FROM adult WHERE marital_status = 'Divorced'",
            "The statement before determines it, so it is free.",
        ),
        Task(
            "Several conditions in one row",
            "SELECT COUNT(*) FILTER (WHERE age < 30) AS young, "
            "COUNT(*) FILTER (WHERE age >= 65) AS elderly FROM adult",
            "`COUNT_IF(p)` and `SUM(CASE WHEN p THEN 1 ELSE 0 END)` are the same count.",
        ),
        Task(
            "Bins",
            "SELECT WIDTH_BUCKET(age, 20, 80, 6) AS bin, COUNT(*) AS people FROM adult "
            "GROUP BY bin ORDER BY bin",
            "Keys are any expression of declared columns.",
        ),
        Task(
            "How many values occur",
            "SELECT COUNT(DISTINCT occupation) AS occupations FROM adult",
            "The interval says how many may occur beyond those that were found.",
        ),
    ),
    "Shares and ratios": (
        Task(
            "A share in its whole",
            "SELECT sex, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM adult "
            "GROUP BY sex",
            "The interval is found by simulating the noise of both counts together.",
        ),
        Task(
            "A rate by group",
            "SELECT sex, AVG(CASE WHEN income = '>50K' THEN 1.0 ELSE 0 END) AS rate "
            "FROM adult WHERE age >= 30 GROUP BY sex",
            "A rate in a small group has a wide interval. It is NULL where the group may be empty.",
        ),
    ),
    "Sums, averages, spread": (
        Task(
            "A sum",
            "SELECT SUM(hours_per_week) AS hours FROM adult",
            "Its noise grows with the largest declared value.",
        ),
        Task(
            "An average to within half a unit",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.5) AVG(age) AS age "
            "FROM adult",
            "Bought in rounds: each is as narrow as the round before shows that it must be.",
        ),
        Task(
            "A sum of clipped values",
            "SELECT SUM(LEAST(hours_per_week, 60)) AS hours FROM adult",
            "Noise follows the cap, so that clipping makes the sum of a heavy tail much cheaper.",
        ),
        Task(
            "Spread, and how two columns vary together",
            "SELECT STDDEV(hours_per_week) AS spread, CORR(age, hours_per_week) AS r FROM adult",
            "These are formulas of sums, each taken about the middle of its column.",
        ),
        Task(
            "Quartiles",
            "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q1, "
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS median FROM adult",
            "Read from noisy counts of the column's levels.",
        ),
    ),
    "Accuracy and price": (
        Task(
            "Within 5 % of itself",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.05) COUNT(*) AS doctors "
            "FROM adult WHERE education = 'Doctorate'",
            "A small group costs more, about in inverse proportion to its size.",
        ),
        Task(
            "For a fixed epsilon",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon => 0.01) race, COUNT(*) AS people "
            "FROM adult GROUP BY race",
            "The interval is then whatever that buys.",
        ),
        Task(
            "Bounds as columns",
            "SELECT sex, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high "
            "FROM adult GROUP BY sex",
            "For tools that show columns only.",
        ),
        Task(
            "The price beforehand",
            "EXPLAIN PRIVACY SELECT COUNT(*) AS n FROM adult WHERE age >= 80",
            "Every candidate with its price; nothing is charged.",
        ),
        Task(
            "What is left",
            "SELECT * FROM data_privacy.budgets",
            "[The views](../privacy_views.md) also have the history and the domains.",
        ),
    ),
    "Claims": (
        Task(
            "How probable is it that there are more than 16,000?",
            "SELECT COUNT(*) AS women, DP_PROBABILITY(women > 16000) AS probability FROM adult "
            "WHERE sex = 'Female'",
            "By the exact law of the noise. It costs no more than the count.",
        ),
        Task(
            "Which of two averages is larger?",
            "SELECT DP_PROBABILITY(AVG(age) FILTER (WHERE sex = 'Male') > "
            "AVG(age) FILTER (WHERE sex = 'Female')) AS men_are_older FROM adult",
            "By draws of the joint law of both.",
        ),
        Task(
            "Groups that are surely large",
            "SELECT education, COUNT(*) AS n FROM adult GROUP BY education "
            "HAVING DP_PROBABILITY(COUNT(*) > 1000) > 0.99 ORDER BY n DESC",
            "Without `DP_PROBABILITY`, noise decides about groups near 1,000.",
        ),
        Task(
            "Which number is best to report?",
            "SELECT COUNT(*) AS n, DP_BEST(n, prior => ((50, 0.25), (100, 0.5), (150, 0.25))) AS "
            "report FROM adult WHERE age >= 85",
            "The whole number of least expected error, if you believed so beforehand.",
        ),
    ),
    "On answers": (
        Task(
            "Only large groups, the largest first",
            "SELECT education, COUNT(*) AS n FROM adult GROUP BY education HAVING COUNT(*) > 1000 "
            "ORDER BY n DESC LIMIT 5",
            "`HAVING`, `ORDER BY` and `LIMIT` work on noisy answers. A note says how probably "
            "these are the largest.",
        ),
        Task(
            "A running total",
            "WITH a AS (SELECT age, COUNT(*) AS n FROM adult WHERE age < 25 GROUP BY age) "
            "SELECT age, SUM(n) OVER (ORDER BY age) AS so_far FROM a",
            "Windows, joins and unions of answers are ordinary SQL, and free. What has no "
            "interval is named in a note.",
        ),
        Task(
            "The best answer of what is known, for nothing",
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon => 0, fallback => 'history') "
            "income, COUNT(*) AS n FROM adult GROUP BY income",
            "NULL where nothing is known.",
        ),
    ),
}


@contextmanager
def analyst() -> Iterator[tacit_client.Connection]:
    """A connection to a server of the Adult table, with a ledger that goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tacit.toml", "adult.csv"):
            shutil.copy(ADULT / name, folder)
        service = build(load(Path(folder) / "tacit.toml"))
        try:
            with serving(service.engine) as address, tacit_client.connect(address) as connection:
                yield connection
        finally:
            service.close()


def shown(answer: tacit_client.Result) -> str:
    """An answer as text, of which the first rows are shown, with its notes."""
    head, *lines = (line.rstrip() for line in str(answer).splitlines())
    about = [line for line in lines if line.startswith(("note: ", "epsilon spent "))]
    rows = [line for line in lines if line not in about]
    if len(rows) > ROWS_MAX:
        rows[ROWS_MAX:] = [f".. and {len(rows) - ROWS_MAX} more"]
    return "\n".join((head, *rows, *about))


def document() -> str:
    """The page, with an answer to each statement."""
    parts = [
        "# SQL by task",
        INTRODUCTION,
    ]
    with analyst() as connection:
        for title, tasks in SECTIONS.items():
            parts.append(f"## {title}")
            for task in tasks:
                sql = task.sql.replace(" FROM ", "\nFROM ", 1)
                text = shown(connection.sql(task.sql))
                parts += [f"### {task.title}", f"```sql\n{sql}\n```", f"```text\n{text}\n```"]
                parts.append(task.remark)
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):  # where the server's log goes
        page = document()
    sys.stdout.write(page)
